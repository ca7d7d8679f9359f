//! Vector instruction sets: one generic source compiles to AVX2, AVX-512, NEON and plain scalar
//! code.

use pulp::{Arch, Simd, WithSimd};

/// The instruction set to use. All sets give the same bits.
#[derive(Debug, Clone, Copy)]
pub struct Instructions(Arch);

impl Instructions {
    /// The best instruction set of the CPU.
    pub fn best() -> Self {
        Instructions(Arch::new())
    }

    /// Plain scalar code.
    pub fn scalar() -> Self {
        Instructions(Arch::Scalar)
    }

    /// Every instruction set of the CPU, scalar first.
    pub fn all() -> Vec<Self> {
        #[allow(unused_mut, reason = "other processors have only these two")]
        let mut sets = vec![Arch::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(pulp::x86::V3::try_new().map(Arch::V3));
            sets.extend(pulp::x86::V4::try_new().map(Arch::V4));
        }
        #[cfg(not(target_arch = "x86_64"))]
        sets.push(Arch::new());
        sets.into_iter().map(Instructions).collect()
    }

    /// Name of the instruction set.
    pub fn name(self) -> &'static str {
        match self.lanes() {
            1 => "scalar",
            4 => "NEON",
            8 => "AVX2",
            _ => "AVX-512",
        }
    }

    /// Runs plain code compiled for this instruction set.
    pub fn run(self, work: impl Work) {
        struct Compiled<W>(W);
        impl<W: Work> WithSimd for Compiled<W> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                self.0.work()
            }
        }
        self.0.dispatch(Compiled(work));
    }

    /// Runs code written for vectors.
    pub fn dispatch<W: WithSimd>(self, work: W) -> W::Output {
        self.0.dispatch(work)
    }

    /// Number of single-precision values per vector.
    pub(crate) fn lanes(self) -> usize {
        struct Lanes;
        impl WithSimd for Lanes {
            type Output = usize;
            fn with_simd<S: Simd>(self, _: S) -> usize {
                S::F32_LANES
            }
        }
        self.0.dispatch(Lanes)
    }
}

/// Plain code that the compiler vectorises. `work` must be `#[inline(always)]`, so that it is
/// compiled for the instruction set it runs with.
pub trait Work {
    /// Performs the work.
    fn work(self);
}
