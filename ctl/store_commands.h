#pragma once

#include <string>

#include "ctl/output.h"
#include "ipc/control_results.h"

/// What `pandoctl store` shows.
namespace pando::ctl {

/// Where the bytes are: a table by size, and what they are per record.
void print_usage(const ipc::StoreAudit& audit, std::ostream& out);

/// The verdict, to `out`; faults to `err`, a line each. kFailed when there are any.
int print_verdict(const ipc::StoreAudit& audit, const std::string& what, Output output);

/// Walks the store in a file that no manager has, one that is left of a manager, or a copy; or the
/// one in an image, whose checksums are compared first. Which it is says the file. Problems go to
/// `err`, one per line; the verdict to `out`.
int check_store_file(const std::string& path, Output output);

}  // namespace pando::ctl
