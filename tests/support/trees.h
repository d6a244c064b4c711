#pragma once

#include <string>

namespace pando::tests {

/// Absolute paths of this build's sources and results, without a slash at the end. They come from an
/// object of their own, so that the other objects of two checkouts are alike and ccache shares them.
extern const char* const kSourceTree;
extern const char* const kBuildTree;

/// `below` begins with a slash.
inline std::string source_path(const std::string& below) { return kSourceTree + below; }
inline std::string build_path(const std::string& below) { return kBuildTree + below; }

}  // namespace pando::tests
