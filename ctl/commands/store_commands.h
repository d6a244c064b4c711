#pragma once

#include <string>

#include "ctl/view/output.h"
#include "ipc/control_results.h"

/// Output and file checks of `pandoctl store`.
namespace pando::ctl {

/// Prints the use of the bytes: a table by size, and the bytes per record.
void print_usage(const ipc::StoreAudit& audit, std::ostream& out);

/// The verdict, to `out`; faults to `err`, a line each. kFailed when there are any.
int print_verdict(const ipc::StoreAudit& audit, const std::string& what, Output output);

/// Walks the store in a file without a manager: one that a manager left, a copy, or an image. The
/// checksums of an image are compared first. The file's content tells its kind. Problems go to
/// `err`, one per line; the verdict to `out`.
int check_store_file(const std::string& path, Output output);

}  // namespace pando::ctl
