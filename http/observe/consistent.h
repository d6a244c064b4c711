#pragma once

#include "base/result.h"
#include "shm/inspect/observer.h"
#include "zone/read/store_view.h"

namespace pando::http {

/// Calls `read(view, window)` on versions until one stayed current meanwhile. Data that `read`
/// copied from a version that changed are discarded and must not be trusted. kFull after 200
/// attempts; with 1,000 versions a second, one attempt in fifty fails.
template <class Read>
auto read_consistently(const shm::Observer& observer, Read read)
    -> Result<decltype(read(zone::StoreView(), shm::Window()))> {
  constexpr int kAttempts = 200;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto look = observer.look();
    if (!look) return tl::unexpected<Error>(look.error());
    auto value = read(zone::StoreView(look->window, look->root, look->version), look->window);
    if (observer.holds(*look)) return value;
  }
  return fail(Errc::kFull, "versions of the store follow one another too quickly");
}

}  // namespace pando::http
