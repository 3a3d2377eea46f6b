//! Wheels, env images and locks of Python dependencies.

mod env;
mod online;
mod scaffold;
mod wheel;
