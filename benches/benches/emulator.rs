//! How fast the PTX emulator is on one core: instructions of threads, and operations of matrix products (`mma`), a second.
#![allow(missing_docs, reason = "macros of criterion")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[path = "../../runtime/emulator/examples/speed/kernels.rs"]
mod kernels;

fn launches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("emulator");
    group.sample_size(10);
    for kernel in &mut kernels::measured() {
        let instructions = kernel.launch(1).thread_instructions;
        group.throughput(Throughput::Elements(if kernel.operations > 0 { kernel.operations } else { instructions }));
        group.bench_function(kernel.name, |b| b.iter(|| kernel.launch(1).thread_instructions));
    }
    group.finish();
}

criterion_group!(benches, launches);
criterion_main!(benches);
