//! Data shared by all passes of one [`Spec`] on one GPU, created once.

use crate::device::{Device, Kernel, Program};
use crate::error::{DeviceError, Result};
use crate::grid::{GROUPS, TILE};
use crate::memory::{Memory, Stream};
use crate::spec::{Layout, Spec, Variant};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Largest number of panels of points: the limit of a grid's second dimension.
const MOST_PANELS: usize = 65_535;
/// Largest magnitude of a coordinate in units: 2⁴⁴.
const COORDINATE_LIMIT: f64 = (1u64 << 44) as f64;
/// If there are more than a quarter as many panels as blocks that the GPU runs at a time, the grid
/// has four rounds of blocks instead of one. Rounding the number of blocks down then leaves little
/// of the GPU idle.
const FEW_PANELS: u32 = 4;

/// A [`Spec`] in the memory of a GPU.
#[derive(Debug)]
pub struct Tables {
    pub(crate) device: Arc<Device>,
    pub(crate) spec: Spec,
    pub(crate) layout: Layout,
    pub(crate) centre: Memory,
    pub(crate) units: Memory,
    pub(crate) frame: Memory,
    pub(crate) starts: Memory,
    pub(crate) cover: Memory,
    pub(crate) low: Memory,
    pub(crate) high: Memory,
    pub(crate) anchors: Memory,
    stream: Stream,
    /// Keyed by the number of points per thread.
    packed: Mutex<HashMap<usize, Arc<Packed>>>,
}

/// Points and levels in the layout of a program.
#[derive(Debug)]
pub(crate) struct Packed {
    pub points: Memory,
    pub levels: Memory,
}

/// A program, and the points in its layout.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub variant: Variant,
    pub program: Arc<Program>,
    pub packed: Arc<Packed>,
    pub panels: u32,
    pub filled: u32,
}

impl Tables {
    /// Copies the data of a spec to a GPU.
    pub fn new(device: Arc<Device>, spec: Spec) -> Result<Arc<Self>> {
        assert!(spec.is_whole(), "every column and level of a spec has its numbers");
        let stream = Stream::new(&device)?;
        let factors = spec.inverse.iter().zip(&spec.per_unit);
        let units: Vec<f64> = factors.map(|(inverse, per_unit)| inverse * per_unit).collect();
        // Inverse scale and unit can be applied with a single rounding only if their product is
        // exact.
        if !units.iter().all(|units| units.is_normal()) {
            return Err(DeviceError::Plan("columns of so large or small a scale"));
        }
        // Largest valid coordinate: values that round to the limit are valid. Exact, because
        // per_unit is a power of two.
        let reach = spec.per_unit.iter().map(|per_unit| (COORDINATE_LIMIT + 0.5) / per_unit);
        let columns = spec.centre.iter().zip(&spec.inverse).zip(reach);
        let frame: Vec<f64> = columns
            .flat_map(|((centre, inverse), reach)| [*centre, *inverse, reach, 0.0])
            .collect();
        let categories = spec.categories.iter();
        let starts: Vec<u32> =
            categories.scan(0, |end, n| Some(std::mem::replace(end, *end + n))).collect();
        let cover: Vec<f32> =
            spec.coverage.iter().flat_map(|(factor, limit)| [*factor, *limit]).collect();
        let (low, high, anchors) = match &spec.private {
            Some(private) => (&private.low[..], &private.high[..], &private.anchors[..]),
            None => (&[][..], &[][..], &[][..]),
        };
        Ok(Arc::new(Tables {
            centre: Memory::of(&device, &spec.centre, &stream, "the plan")?,
            units: Memory::of(&device, &units, &stream, "the plan")?,
            frame: Memory::of(&device, &frame, &stream, "the plan")?,
            starts: Memory::of(&device, &starts, &stream, "the plan")?,
            cover: Memory::of(&device, &cover, &stream, "the plan")?,
            low: Memory::of(&device, low, &stream, "the plan")?,
            high: Memory::of(&device, high, &stream, "the plan")?,
            anchors: Memory::of(&device, anchors, &stream, "the plan")?,
            layout: spec.layout(),
            packed: Mutex::default(),
            stream,
            spec,
            device,
        }))
    }

    /// The GPU.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The position of each sum.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A program with the points that it reads.
    pub(crate) fn step(&self, variant: Variant) -> Result<Step> {
        let program = self.device.program(&self.spec.defines(&variant))?;
        let per_thread = self.spec.per_thread(&variant);
        let mut all = self.packed.lock().unwrap_or_else(|e| e.into_inner());
        let packed = match all.get(&per_thread) {
            Some(packed) => packed.clone(),
            None => {
                let what = "landmarks or centres";
                let points = self.spec.packed_points(per_thread);
                let levels = self.spec.packed_levels(per_thread);
                let packed = Arc::new(Packed {
                    points: Memory::of(&self.device, &points, &self.stream, what)?,
                    levels: Memory::of(&self.device, &levels, &self.stream, what)?,
                });
                all.insert(per_thread, packed.clone());
                packed
            }
        };
        let panels = self.spec.panels(per_thread);
        if panels > MOST_PANELS {
            return Err(DeviceError::Plan("so many points at once"));
        }
        let filled = panels * GROUPS * per_thread;
        Ok(Step { variant, program, packed, panels: panels as u32, filled: filled as u32 })
    }
}

impl Step {
    /// The grid that combines `rows` rows with all points: tiles of rows and panels of points.
    pub fn grid(&self, rows: u64) -> (u32, u32) {
        let slots = self.program.slots(Kernel::Pass);
        let rounds = if self.panels * FEW_PANELS <= slots { 1 } else { FEW_PANELS };
        let across = (slots * rounds / self.panels).max(1);
        (across.min(rows.div_ceil(TILE) as u32), self.panels)
    }
}
