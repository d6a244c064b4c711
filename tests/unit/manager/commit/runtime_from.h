#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "config/load.h"
#include "manager/commit/runtime.h"

namespace pando::manager::testing {

/// What the manager makes of a configuration file with this text.
inline RuntimePtr runtime_from(std::string_view text) {
  config::LoadResult loaded = config::load_text(text, "/tmp/pando.yaml");
  EXPECT_TRUE(loaded.ok()) << loaded.error_text();
  return make_runtime(std::move(loaded.settings)).value();
}

}  // namespace pando::manager::testing
