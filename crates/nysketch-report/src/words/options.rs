//! Parameters as the command spells them.

/// Spells the parameters in a message of the library as options: `--scale standard`.
pub fn in_options(message: &str) -> String {
    nysketch::error::respell(message, |name, value| {
        let dashes = if name.len() == 1 { "-" } else { "--" };
        let value = value.map_or(String::new(), |v| format!(" {v}"));
        format!("{dashes}{}{value}", name.replace('_', "-"))
    })
}
