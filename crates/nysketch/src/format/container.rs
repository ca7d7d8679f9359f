//! The container: named tensors and one string of metadata in a safetensors file whose bytes are a
//! function of its content.

use crate::error::{FormatError, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{HashMap, HashSet};

/// The one metadata key.
const KEY: &str = "nysketch";
/// The tensor that holds the checksum; always the last four bytes of the file.
const CHECKSUM: &str = "crc32";

/// A tensor to be written.
pub struct Tensor {
    name: &'static str,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    /// From values.
    pub fn new<const N: usize, T>(
        name: &'static str,
        dtype: Dtype,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = T>,
        to_bytes: impl Fn(T) -> [u8; N],
    ) -> Self {
        Tensor { name, dtype, shape, bytes: values.into_iter().flat_map(to_bytes).collect() }
    }
}

/// The bytes of a file.
pub fn encode(metadata: String, mut tensors: Vec<Tensor>) -> Vec<u8> {
    tensors.push(Tensor { name: CHECKSUM, dtype: Dtype::U8, shape: vec![4], bytes: vec![0; 4] });
    let views = tensors.iter().map(|t| {
        let view =
            TensorView::new(t.dtype, t.shape.clone(), &t.bytes).expect("shape and bytes agree");
        (t.name, view)
    });
    let info = HashMap::from([(KEY.to_string(), metadata)]);
    let mut bytes = safetensors::serialize(views, Some(info)).expect("few tensors of known size");
    let body = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// An error about a value.
pub fn value_error(what: impl Into<String>) -> crate::error::Error {
    FormatError::Value(what.into()).into()
}

/// The tensors of a file, each of which must be asked for.
pub struct Reader<'a> {
    container: SafeTensors<'a>,
    names: HashSet<&'static str>,
}

impl<'a> Reader<'a> {
    /// Opens a container and gives its metadata, before anything else is looked at.
    pub fn open(bytes: &'a [u8]) -> Result<(Self, String)> {
        let damaged = |e: safetensors::SafeTensorError| FormatError::Container(e.to_string());
        let container = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let metadata = header.metadata().as_ref().and_then(|m| m.get(KEY).cloned());
        let metadata = metadata.ok_or(FormatError::NoMetadata)?;
        Ok((Reader { container, names: HashSet::new() }, metadata))
    }

    fn view(&self, name: &str) -> Result<TensorView<'a>> {
        Ok(self.container.tensor(name).map_err(|_| FormatError::MissingTensor(name.into()))?)
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.container.tensor(name).is_ok()
    }

    /// First dimension of a tensor. Sizes are bounded by the file's own, which is in memory.
    pub fn length(&self, name: &str) -> Result<usize> {
        Ok(self.view(name)?.shape().first().copied().unwrap_or(0))
    }

    /// The bytes of a tensor of this type and shape.
    pub fn tensor(
        &mut self,
        name: &'static str,
        dtype: Dtype,
        shape: &[usize],
    ) -> Result<&'a [u8]> {
        let view = self.view(name)?;
        if view.dtype() != dtype || view.shape() != shape {
            return Err(FormatError::Shape {
                name: name.to_string(),
                expected: format!("{dtype:?} {shape:?}"),
                found: format!("{:?} {:?}", view.dtype(), view.shape()),
            }
            .into());
        }
        self.names.insert(name);
        Ok(view.data())
    }

    /// Finite doubles.
    pub fn f64s(&mut self, name: &'static str, n: usize) -> Result<Vec<f64>> {
        let bytes = self.tensor(name, Dtype::F64, &[n])?;
        let values: Vec<f64> =
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        if !values.iter().all(|x| x.is_finite()) {
            return Err(value_error(format!(
                "the tensor '{name}' holds a value that is not finite"
            )));
        }
        Ok(values)
    }

    /// Integers.
    pub fn i32s(&mut self, name: &'static str, n: usize) -> Result<Vec<i32>> {
        let bytes = self.tensor(name, Dtype::I32, &[n])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect())
    }

    /// Single-precision numbers, row-major.
    pub fn f32s(&mut self, name: &'static str, rows: usize, columns: usize) -> Result<Vec<f32>> {
        let bytes = self.tensor(name, Dtype::F32, &[rows, columns])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// The last tensor must be the checksum of all before it.
    pub fn check_checksum(&self, bytes: &[u8]) -> Result<()> {
        let view = self.view(CHECKSUM)?;
        if view.dtype() != Dtype::U8 || view.shape() != [4] {
            return Err(FormatError::MissingTensor(CHECKSUM.into()).into());
        }
        let (body, tail) = bytes.split_at(bytes.len() - 4);
        let found = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let expected = crc32fast::hash(body);
        match found == expected {
            true => Ok(()),
            false => Err(FormatError::Checksum { found, expected }.into()),
        }
    }

    /// Every tensor must have been asked for.
    pub fn finish(&self) -> Result<()> {
        for name in self.container.names() {
            if name != CHECKSUM && !self.names.contains(name) {
                return Err(FormatError::UnexpectedTensor(name.to_string()).into());
            }
        }
        Ok(())
    }
}
