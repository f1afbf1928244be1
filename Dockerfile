# The executable, and the Python package, from what `scripts/release --archives` has made: nothing is compiled here, and there is
# neither LLVM nor a CUDA toolkit in the images.
#
#   scripts/release --archives
#   docker build -t rtc . && docker run --rm rtc                      # the softmax example, in the emulator
#   docker run --rm --gpus all rtc                                    # on a GPU
#   docker run --rm -v "$PWD:/work" rtc build kernel.rt --signature ".."
#   docker build -t rtc-python --target python . && docker run --rm rtc-python

FROM python:3.12-slim AS python
COPY out/release/*.whl /tmp/
RUN pip install --no-cache-dir numpy==2.* /tmp/*.whl && rm /tmp/*.whl
COPY examples/first.py /opt/rtc/first.py
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
CMD ["python", "/opt/rtc/first.py"]

FROM debian:12-slim
ADD out/release/rtc-*-x86_64-unknown-linux-gnu.tar.xz /opt/
RUN mv /opt/rtc-* /opt/rtc && ln -s /opt/rtc/rtc /usr/local/bin/rtc && rtc --version
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
ENTRYPOINT ["rtc"]
CMD ["run", "/opt/rtc/examples/softmax/softmax.rt", "--launch", "/opt/rtc/examples/softmax/launch.json", \
     "--check", "/opt/rtc/examples/softmax/expected.safetensors", "--tolerance", "1e-6"]
