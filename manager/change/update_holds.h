#pragma once

#include <functional>

#include "dns/name.h"

namespace pando::manager {

/// Has a zone's updates wait while a builder thread signs for it, so that the work is not in vain.
/// Each hold() is followed by one release().
struct UpdateHolds {
  std::function<void(const dns::Name& zone)> hold;
  std::function<void(const dns::Name& zone)> release;
};

}  // namespace pando::manager
