#pragma once

#include <string>

#include "ctl/view/output.h"

namespace pando::ctl {

/// Arguments of `pandoctl import`.
struct ImportRequest {
  std::string file;
  std::string kind;  ///< empty = guessed
  std::string to;    ///< empty = standard output
  bool with_secrets = false;
};

/// Writes another server's configuration as one of ours, and reports what is not taken over. With
/// `to`, the keys' secrets are written into files beside it. Existing files stay as they are, and
/// after an error no new ones are there.
int import_foreign(const ImportRequest& request, Output output);

}  // namespace pando::ctl
