"""What programs ask of Triton's back end for NVIDIA's GPUs."""
