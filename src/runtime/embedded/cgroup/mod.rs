//! Control groups: limits, accounts, and a place to find what is left. v1, v2 and hybrid hosts: each
//! controller is taken from where the host has it.

mod group;
mod hierarchy;
mod join;
mod layout;

pub(super) use group::Group;
pub(super) use hierarchy::Hierarchy;
pub(super) use join::{join, open_v1, open_v2, remove};
