"""Makes a wheel of a staged package, and a fresh environment with it and numpy: `wheel.py STAGED FOLDER VERSION`.

The environment is made by `venv`, the wheel installed by `pip`; numpy is that of the Python which runs this, so that no network
is needed. The wheel is like that of `make wheel`, but that its module is the debug build and not compressed."""

import base64
import hashlib
import os
import subprocess
import sys
import venv
import zipfile

staged, folder, version = sys.argv[1:]
name, tag = f"rtc_triton-{version}", "cp310-abi3-linux_x86_64"
wheel = os.path.join(folder, f"{name}-{tag}.whl")
os.makedirs(folder, exist_ok=True)
record = []
with zipfile.ZipFile(wheel, "w") as file:

    def add(path, content):
        file.writestr(path, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}")

    for place, _, names in os.walk(os.path.join(staged, "rtc")):
        for one in names:
            path = os.path.join(place, one)
            with open(path, "rb") as source:
                add(os.path.relpath(path, staged), source.read())
    info = f"{name}.dist-info"
    add(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: rtc-triton\nVersion: {version}\n".encode())
    add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pyproject.toml")) as project:
        scripts = project.read().split("[project.scripts]")[1].split("\n\n")[0].replace('"', "").strip()
    add(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}\n".encode())
    file.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")

environment = os.path.join(folder, "venv")
venv.create(environment, clear=True, with_pip=True, symlinks=True)
python = os.path.join(environment, "bin", "python")
subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", wheel], check=True)
site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True, capture_output=True,
                      text=True).stdout.strip()
import numpy  # noqa: E402

own = os.path.dirname(os.path.dirname(numpy.__file__))
for part in ("numpy", "numpy.libs"):
    if os.path.isdir(os.path.join(own, part)):
        os.symlink(os.path.join(own, part), os.path.join(site, part))
os.remove(wheel)
print(python)
