//! Compilation of the kernels for one GPU.

use crate::error::{DeviceError, Result};
use crate::library::Nvrtc;
use crate::{KERNELS, cache};
use std::ffi::{CString, c_char, c_int};

/// Compiler options of all programs. Each operation is rounded separately.
const ALWAYS: [&str; 4] = ["--fmad=false", "--ftz=false", "--std=c++17", "--device-int128"];

/// Compiles machine code for this compute capability, or intermediate code that the driver
/// completes if NVRTC is older than the GPU.
pub fn compile(defines: &[String], capability: i32) -> Result<Vec<u8>> {
    let nvrtc = Nvrtc::get()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: NVRTC's own function, with arguments of the right types.
    unsafe { (nvrtc.version)(&mut major, &mut minor) };
    let version = format!("{major}.{minor}");
    let known = architectures(nvrtc);
    let architecture = match known.iter().filter(|a| **a <= capability).max() {
        Some(a) if *a == capability => format!("sm_{a}"),
        Some(a) => format!("compute_{a}"),
        None => format!("sm_{capability}"),
    };
    let mut options = vec![format!("--gpu-architecture={architecture}")];
    options.extend(ALWAYS.iter().map(|o| o.to_string()));
    options.extend_from_slice(defines);
    let key = options.join(" ");
    let parts = [KERNELS, &key, &version];
    if let Some(program) = cache::read(&parts) {
        return Ok(program);
    }
    let finished = architecture.starts_with("sm_");
    let program = translate(nvrtc, &options, finished)
        .map_err(|log| DeviceError::NotCompiled { version: version.clone(), log })?;
    cache::write(&parts, &program);
    Ok(program)
}

/// The compute capabilities that NVRTC supports.
fn architectures(nvrtc: &Nvrtc) -> Vec<c_int> {
    let mut count = 0;
    // SAFETY: the list has room for the number of entries that NVRTC returned.
    unsafe {
        (nvrtc.count_architectures)(&mut count);
        let mut known = vec![0; count.max(0) as usize];
        (nvrtc.architectures)(known.as_mut_ptr());
        known
    }
}

/// The text with a terminating zero byte.
fn terminated(text: &str) -> std::result::Result<CString, String> {
    CString::new(text).map_err(|e| e.to_string())
}

/// Runs NVRTC. The error is its log.
fn translate(
    nvrtc: &Nvrtc,
    options: &[String],
    finished: bool,
) -> std::result::Result<Vec<u8>, String> {
    let (source, name) = (terminated(KERNELS)?, terminated("kernels.cu")?);
    let options: std::result::Result<Vec<CString>, String> =
        options.iter().map(|option| terminated(option)).collect();
    let options = options?;
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program = 0;
    // SAFETY: strings end with a zero byte and outlive the calls; buffers have the sizes that NVRTC
    // requests.
    unsafe {
        match (nvrtc.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, 0, 0) {
            0 => {}
            code => return Err(format!("error {code}")),
        }
        let code = (nvrtc.compile)(program, pointers.len() as c_int, pointers.as_ptr());
        let (size, read) = match (code == 0, finished) {
            (false, _) => (nvrtc.log_size, nvrtc.log),
            (true, true) => (nvrtc.cubin_size, nvrtc.cubin),
            (true, false) => (nvrtc.ptx_size, nvrtc.ptx),
        };
        let mut bytes = 0;
        let sized = size(program, &mut bytes);
        let mut result = vec![0u8; bytes];
        let got = read(program, result.as_mut_ptr());
        (nvrtc.destroy)(&mut program);
        match (code, sized, got) {
            (0, 0, 0) => Ok(result),
            (0, ..) => Err(format!("error {}", sized.max(got))),
            _ => Err(String::from_utf8_lossy(&result).trim_end_matches(['\0', '\n']).to_string()),
        }
    }
}
