#pragma once

#include <cstdint>

#include "zone/record/changeset.h"

namespace pando::zone {

/// The effect of applying one Changeset.
struct Applied {
  dns::Serial from;
  dns::Serial to;
  Changeset effective;                 ///< the real changes: empty = no change
  std::uint32_t missing_removals = 0;  ///< records to remove that did not exist
  std::uint32_t redundant_additions = 0;
};

}  // namespace pando::zone
