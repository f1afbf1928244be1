//! A small model in candle whose attention and softmax are kernels of this project.

mod ops;

use candle_core::{DType, Device, Result, Tensor};

/// One layer of self-attention and a classifier on top.
struct Model {
    heads: usize,
    qkv: [Tensor; 3],
    out: Tensor,
}

impl Model {
    fn new(width: usize, heads: usize, classes: usize) -> Result<Model> {
        let weights = |rows: usize, columns: usize, seed: usize| {
            let number = |i: usize| ((i * 37 + seed * 11) % 101) as f32 / 101.0 - 0.5;
            let all: Vec<f32> = (0..rows * columns).map(number).collect();
            Tensor::from_vec(all, (rows, columns), &device()?)
        };
        let qkv = [weights(width, width, 1)?, weights(width, width, 2)?, weights(width, width, 3)?];
        Ok(Model { heads, qkv, out: weights(width, classes, 4)? })
    }

    /// The probabilities of the classes for each row of `x`.
    fn forward(
        &self,
        x: &Tensor,
        attention: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
        softmax: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let heads = |x: Tensor| -> Result<Tensor> {
            x.reshape((rows, self.heads, width / self.heads))?.transpose(0, 1)?.contiguous()?.to_dtype(DType::F16)
        };
        let [q, k, v] = &self.qkv;
        let mixed = attention(&heads(x.matmul(q)?)?, &heads(x.matmul(k)?)?, &heads(x.matmul(v)?)?)?;
        let mixed = mixed.to_dtype(DType::F32)?.transpose(0, 1)?.contiguous()?.reshape((rows, width))?;
        softmax(&mixed.matmul(&self.out)?)
    }
}

/// A GPU if there is one and the feature `cuda` is on, else the CPU.
fn device() -> Result<Device> {
    Device::cuda_if_available(0)
}

fn input(rows: usize, width: usize) -> Result<Tensor> {
    let all: Vec<f32> = (0..rows * width).map(|i| ((i * 29) % 97) as f32 / 97.0 - 0.5).collect();
    Tensor::from_vec(all, (rows, width), &device()?)
}

fn main() -> Result<()> {
    let model = Model::new(64, 2, 10)?;
    let probabilities = model.forward(&input(5, 64)?, ops::attention, ops::softmax)?;
    println!("{probabilities}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{D, Var};

    fn softmax(x: &Tensor) -> Result<Tensor> {
        let e = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?.exp()?;
        e.broadcast_div(&e.sum_keepdim(D::Minus1)?)
    }

    fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        let scale = 1.0 / (q.dim(2)? as f64).sqrt();
        let [q, k, v] = [q.to_dtype(DType::F32)?, k.to_dtype(DType::F32)?, v.to_dtype(DType::F32)?];
        let scores = (q.matmul(&k.transpose(1, 2)?)? * scale)?;
        softmax(&scores)?.matmul(&v)?.to_dtype(DType::F16)
    }

    fn difference(a: &Tensor, b: &Tensor) -> f32 {
        let difference = (a.to_dtype(DType::F32).unwrap() - b.to_dtype(DType::F32).unwrap()).unwrap();
        difference.abs().unwrap().max_all().unwrap().to_scalar().unwrap()
    }

    #[test]
    fn the_model_gives_what_candle_alone_gives() {
        for (rows, width, heads) in [(5, 64, 2), (70, 128, 2), (33, 128, 4)] {
            let (model, x) = (Model::new(width, heads, 10).unwrap(), input(rows, width).unwrap());
            let ours = model.forward(&x, ops::attention, ops::softmax).unwrap();
            let candle = model.forward(&x, attention, softmax).unwrap();
            assert_eq!(ours.dims(), [rows, 10]);
            let difference = difference(&ours, &candle);
            assert!(difference < 2e-3, "{rows} rows: {difference}");
        }
    }

    #[test]
    fn gradients_go_through_softmax() {
        let x = Var::from_tensor(&input(7, 100).unwrap()).unwrap();
        let weights = input(7, 100).unwrap();
        let gradient =
            |y: Tensor| (y * &weights).unwrap().sum_all().unwrap().backward().unwrap().get(&x).unwrap().clone();
        let ours = gradient(ops::softmax(x.as_tensor()).unwrap());
        let candle = gradient(softmax(x.as_tensor()).unwrap());
        assert!(difference(&ours, &candle) < 1e-7);
        let largest: f32 = candle.abs().unwrap().max_all().unwrap().to_scalar().unwrap();
        assert!(largest > 1e-4, "{largest}");
    }

    #[test]
    fn what_the_kernels_do_not_take_is_an_error() {
        let said = |result: Result<Tensor>| result.unwrap_err().to_string();
        let x = input(4, 64).unwrap();
        assert!(said(ops::softmax(&x.t().unwrap())).contains("not contiguous"));
        assert!(said(ops::softmax(&input(1, 2000).unwrap())).contains("1 to 1024"));
        let half = x.to_dtype(DType::F16).unwrap();
        assert!(said(ops::softmax(&half)).contains("takes f32"));
        let q = half.reshape((1, 4, 64)).unwrap();
        assert!(said(ops::attention(&q, &q, &half.reshape((1, 8, 32)).unwrap())).contains("the shapes"));
        let narrow = half.reshape((1, 16, 16)).unwrap();
        assert!(said(ops::attention(&narrow, &narrow, &narrow)).contains("32 or 64 columns"));
    }
}
