#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "ipc/control.h"
#include "ipc/control_results.h"
#include "manager/commit/runtime.h"

namespace pando::manager {

/// The parts of a configuration that pando-http serves by, with digests in the place of secrets.
[[nodiscard]] ipc::HttpSettingsResult http_settings(const config::Settings& settings);

/// Answers `http-settings`: pando-http asks before each response, so the answer is made once for
/// each configuration. On the commit thread.
class HttpSettings {
 public:
  /// All settings, or the label alone if the request's is the same. kNotFound: the configuration
  /// has no section `http`.
  Result<nlohmann::json> answer(const RuntimePtr& runtime, const ipc::ControlRequest& request);

 private:
  std::weak_ptr<const Runtime> of_;
  nlohmann::json all_;
  std::string label_;
};

}  // namespace pando::manager
