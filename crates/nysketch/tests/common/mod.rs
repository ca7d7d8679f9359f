//! Helpers of the integration tests.
#![allow(dead_code, reason = "each test file uses some of them")]

use nysketch::{Plan, PlanParams, Sampling, Sketch, SketchParams, Table, plan_for};
use nysketch_core::rows::sample::mix;
use std::sync::Arc;

/// A cheap reproducible stream of numbers.
pub struct Stream(pub u64);

impl Stream {
    pub fn bits(&mut self) -> u64 {
        self.0 = mix(self.0);
        self.0
    }

    /// Returns a number uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0f64.powi(-53)
    }

    /// Returns a roughly standard normal number: the sum of twelve uniforms minus six.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}

/// Returns a plan with the given landmarks and columns c0, c1, …
pub fn plan_with(
    landmarks: Vec<Vec<f64>>,
    table: &Table,
    change: impl FnOnce(&mut PlanParams),
) -> Arc<Plan> {
    let mut params = PlanParams::default().landmarks_from("landmarks", landmarks);
    change(&mut params);
    Arc::new(plan_for(table, params).unwrap().0)
}

/// Returns parameters with this number of landmarks, or the default number, chosen by a rule.
pub fn nystrom(landmarks: Option<usize>, sampling: Sampling) -> PlanParams {
    let params = PlanParams::default().sampling(sampling);
    match landmarks {
        Some(m) => params.landmarks(m),
        None => params,
    }
}

pub fn sketch(plan: &Arc<Plan>, table: &Table) -> Sketch {
    Sketch::of(plan, table, SketchParams::default(), &()).unwrap()
}
