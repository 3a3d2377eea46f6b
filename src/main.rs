//! The `hallmark` command: a shim around [`hallmark::cli`].

fn main() -> std::process::ExitCode {
    hallmark::cli::main()
}
