//! The container: named tensors and one metadata string in a safetensors file. The content
//! determines every byte of the file.

use crate::error::{FormatError, Result};
use crate::numeric::digest::sha256_of;
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo, TensorView};
use std::collections::{HashMap, HashSet};

/// The one metadata key.
const KEY: &str = "nysketch";
/// The tensor with the checksum; always the last four bytes of the file.
const CHECKSUM: &str = "crc32";

/// Approximate number of bytes of a tensor that are generated at once.
const CHUNK: usize = 1 << 16;

/// A function that receives bytes in order.
type Out<'a> = &'a mut dyn FnMut(&[u8]);

/// A tensor to write. Its bytes are generated in chunks on demand, because a whole tensor may
/// need as much memory as the sketch.
pub struct Tensor<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    write: Box<dyn Fn(Out<'_>) + 'a>,
}

impl<'a> Tensor<'a> {
    /// Creates a tensor from values.
    pub fn new<const N: usize, T>(
        name: impl Into<String>,
        dtype: Dtype,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = T> + Clone + 'a,
        to_bytes: impl Fn(T) -> [u8; N] + 'a,
    ) -> Self {
        Tensor {
            name: name.into(),
            dtype,
            shape,
            write: Box::new(move |out: Out<'_>| write_chunks(values.clone(), &to_bytes, out)),
        }
    }

    fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

/// Passes the bytes of values to `out`, chunk by chunk.
fn write_chunks<const N: usize, T>(
    values: impl IntoIterator<Item = T>,
    to_bytes: impl Fn(T) -> [u8; N],
    out: Out<'_>,
) {
    let mut chunk = Vec::with_capacity(CHUNK + N);
    for value in values {
        chunk.extend(to_bytes(value));
        if chunk.len() >= CHUNK {
            out(&chunk);
            chunk.clear();
        }
    }
    out(&chunk);
}

/// The content of a file.
pub struct Content<'a> {
    metadata: String,
    /// The tensors in the order of the file.
    tensors: Vec<Tensor<'a>>,
}

impl<'a> Content<'a> {
    /// Combines the parts and adds the checksum.
    pub fn new(metadata: String, mut tensors: Vec<Tensor<'a>>) -> Self {
        tensors.sort_by(|a, b| b.dtype.cmp(&a.dtype).then(a.name.cmp(&b.name)));
        Content { metadata, tensors }
    }

    /// Returns the length of the header, followed by the header.
    fn header(&self) -> Vec<u8> {
        let (mut infos, mut start) = (Vec::new(), 0);
        for tensor in &self.tensors {
            let data_offsets = (start, start + tensor.len());
            start = data_offsets.1;
            let info =
                TensorInfo { dtype: tensor.dtype, shape: tensor.shape.clone(), data_offsets };
            infos.push((tensor.name.clone(), info));
        }
        let data_offsets = (start, start + 4);
        let checksum = TensorInfo { dtype: Dtype::U8, shape: vec![4], data_offsets };
        infos.push((CHECKSUM.to_string(), checksum));
        let info = HashMap::from([(KEY.to_string(), self.metadata.clone())]);
        let header = Metadata::new(Some(info), infos).expect("few tensors of known size");
        let mut json = serde_json::to_vec(&header).expect("names and numbers are valid JSON");
        // Pad the header to a multiple of eight bytes.
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json);
        bytes
    }

    /// Writes the file in parts. The last part is the checksum of all previous bytes.
    pub fn write(&self, mut out: impl FnMut(&[u8])) {
        let mut checksum = crc32fast::Hasher::new();
        let header = self.header();
        checksum.update(&header);
        out(&header);
        for tensor in &self.tensors {
            (tensor.write)(&mut |bytes: &[u8]| {
                checksum.update(bytes);
                out(bytes);
            });
        }
        out(&checksum.finalize().to_le_bytes());
    }

    /// Returns the bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let body = self.tensors.iter().map(Tensor::len).sum::<usize>();
        let mut bytes = Vec::with_capacity(body + self.metadata.len() + CHUNK);
        self.write(|part| bytes.extend_from_slice(part));
        bytes
    }

    /// Returns the SHA-256 of the file in hexadecimal.
    pub fn sha256(&self) -> String {
        sha256_of(|take| self.write(take))
    }

    /// Whether these bytes equal the file.
    pub fn is_encoded_as(&self, bytes: &[u8]) -> bool {
        let (mut rest, mut same) = (bytes, true);
        self.write(|part| match rest.split_at_checked(part.len()) {
            Some((start, end)) => {
                same &= start == part;
                rest = end;
            }
            None => same = false,
        });
        same && rest.is_empty()
    }
}

/// Creates the error for a container that cannot be read.
fn damaged(error: SafeTensorError) -> FormatError {
    FormatError::Container(error.to_string())
}

/// Creates an error about a value.
pub fn value_error(what: impl Into<String>) -> crate::error::Error {
    FormatError::Value(what.into()).into()
}

/// The tensors of a file. Each one must be read.
pub struct Reader<'a> {
    container: SafeTensors<'a>,
    names: HashSet<String>,
}

impl<'a> Reader<'a> {
    /// Opens a container and returns its metadata before any tensor is read.
    pub fn open(bytes: &'a [u8]) -> Result<(Self, String)> {
        let container = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let metadata = header.metadata().as_ref().and_then(|m| m.get(KEY).cloned());
        let metadata = metadata.ok_or(FormatError::NoMetadata)?;
        Ok((Reader { container, names: HashSet::new() }, metadata))
    }

    fn view(&self, name: &str) -> Result<TensorView<'a>> {
        Ok(self.container.tensor(name).map_err(|_| FormatError::MissingTensor(name.into()))?)
    }

    /// Whether a tensor of this name exists.
    pub fn has(&self, name: &str) -> bool {
        self.container.tensor(name).is_ok()
    }

    /// Returns the first dimension of a tensor. It is bounded by the size of the file, which is in
    /// memory.
    pub fn length(&self, name: &str) -> Result<usize> {
        Ok(self.view(name)?.shape().first().copied().unwrap_or(0))
    }

    /// Returns the bytes of a tensor of this type and shape.
    pub fn tensor(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&'a [u8]> {
        let view = self.view(name)?;
        if view.dtype() != dtype || view.shape() != shape {
            return Err(FormatError::Shape {
                name: name.to_string(),
                expected: format!("{dtype:?} {shape:?}"),
                found: format!("{:?} {:?}", view.dtype(), view.shape()),
            }
            .into());
        }
        self.names.insert(name.to_string());
        Ok(view.data())
    }

    /// Reads finite doubles.
    pub fn f64s(&mut self, name: &str, n: usize) -> Result<Vec<f64>> {
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

    /// Reads integers.
    pub fn i32s(&mut self, name: &str, n: usize) -> Result<Vec<i32>> {
        let bytes = self.tensor(name, Dtype::I32, &[n])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect())
    }

    /// Reads single-precision numbers in row-major order.
    pub fn f32s(&mut self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>> {
        let bytes = self.tensor(name, Dtype::F32, &[rows, columns])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// Checks that the last tensor is the checksum of all previous bytes.
    pub fn check_checksum(&self, bytes: &[u8]) -> Result<()> {
        let view = self.view(CHECKSUM)?;
        if view.dtype() != Dtype::U8 || view.shape() != [4] {
            return Err(FormatError::MissingTensor(CHECKSUM.into()).into());
        }
        let (body, tail) = bytes.split_at(bytes.len() - 4);
        let found = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let expected = crc32fast::hash(body);
        if found != expected {
            return Err(FormatError::Checksum { found, expected }.into());
        }
        Ok(())
    }

    /// Checks that every tensor was read.
    pub fn finish(&self) -> Result<()> {
        for name in self.container.names() {
            if name != CHECKSUM && !self.names.contains(name) {
                return Err(FormatError::UnexpectedTensor(name.to_string()).into());
            }
        }
        Ok(())
    }
}
