#pragma once

#include <string>

#include "ctl/view/output.h"

namespace pando::ctl {

/// Exit code of an import that is done and whose result gives other answers than before. No manager
/// is asked, so kUnreachable has the same number.
inline constexpr int kOtherAnswers = 3;

/// Arguments of `pandoctl import`.
struct ImportRequest {
  std::string file;
  std::string kind;  ///< empty = guessed
  std::string to;    ///< empty = standard output
  bool with_secrets = false;
};

/// Writes another server's configuration as one of ours, and reports what is not taken over. The
/// exit code is kOtherAnswers if some of that changes answers. With `to`, the keys' secrets are
/// written into files beside it. Existing files stay as they are, and after an error no new ones
/// are there.
int import_foreign(const ImportRequest& request, Output output);

}  // namespace pando::ctl
