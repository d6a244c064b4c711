#pragma once

#include <string>

#include "ctl/output.h"

/// Checks that need no manager. Problems go to `err`, one per line; the verdict to `out`.
namespace pando::ctl {

/// Reads the configuration with its zone lists.
int check_config(const std::string& path, Output output);

/// Reads the zone file `path` as the zone `name`, with every check that loading makes.
int check_zone(const std::string& name, const std::string& path, Output output);

}  // namespace pando::ctl
