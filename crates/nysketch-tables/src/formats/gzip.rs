//! Gzip, with a clear error for bytes after the last member.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, ErrorKind, Read};

/// A stream of gzip members that are decompressed one after the other.
pub struct Gzip<R> {
    /// `None` after the last member.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    /// Starts with the first member.
    pub fn new(source: R) -> Self {
        Gzip { member: Some(GzDecoder::new(source)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut source) = self.member.take().map(GzDecoder::into_inner) else { break };
            match source.fill_buf()?.first() {
                None => {}
                Some(0x1f) => self.member = Some(GzDecoder::new(source)),
                Some(_) => {
                    let how = "bytes that are not gzip follow the gzip data; the file is damaged, \
                               or something was appended to it";
                    return Err(io::Error::new(ErrorKind::InvalidData, how));
                }
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::{BufReader, Write};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn expanded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut expanded = Vec::new();
        // Members need not end at the end of a buffer.
        Gzip::new(BufReader::with_capacity(7, bytes)).read_to_end(&mut expanded).map(|_| expanded)
    }

    #[test]
    fn members_follow_one_another_and_nothing_else() {
        let (a, empty) = (gzip(b"x\n1\n"), gzip(b""));
        assert_eq!(expanded(&[&a[..], &empty, &a].concat()).unwrap(), b"x\n1\nx\n1\n");
        for tail in [&b"x"[..], b"garbage after the end", &[0; 512]] {
            let error = expanded(&[&a[..], tail].concat()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        }
        for end in 1..a.len() {
            assert!(expanded(&a[..end]).is_err(), "{end}");
        }
    }
}
