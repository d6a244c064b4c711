#pragma once

#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/settings_cache.h"

namespace pando::worker {

/// Decides on UPDATE and NOTIFY: the manager gets the requests that some rule may allow, all others
/// are answered here.
class ForwardHandler {
 public:
  explicit ForwardHandler(SettingsCache& cache) noexcept : cache_(cache) {}

  Outcome update(RequestContext& context);
  Outcome notify(RequestContext& context);

 private:
  SettingsCache& cache_;
};

}  // namespace pando::worker
