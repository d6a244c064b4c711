#pragma once

#include <cstddef>
#include <cstdint>

namespace pando::manager {

/// How many of the zones that come next are tried in one step, when the store may have no room for
/// all: as many as there are, then half of what was refused, and so on, until the first one is
/// found that there is no room for. Costs some ten steps, but few in a store that has no room for
/// any, however many slices of zones are tried.
class SpaceSearch {
 public:
  /// 0: there is no room for the first one of those that come next, nor, if it gives_up(), is any
  /// of them to be tried.
  [[nodiscard]] std::size_t most() const noexcept {
    if (refused_ == kNone) return kNone;
    return gives_up() ? 0 : refused_ / 2;
  }
  [[nodiscard]] bool gives_up() const noexcept { return in_vain_ > kMostInVain; }

  /// There was no room for the next `zones`, one at least, together.
  void refused(std::size_t zones) noexcept {
    ++in_vain_;
    refused_ = zones;
  }
  /// There was for these, at most most().
  void taken(std::size_t zones) noexcept {
    if (zones > 0) in_vain_ = 0;
    if (refused_ != kNone) refused_ -= zones;
  }
  /// Others come next.
  void next() noexcept { refused_ = kNone; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  /// Enough to find three or four in a slice that do not fit, and whose neighbours do.
  static constexpr unsigned kMostInVain = 32;

  std::size_t refused_ = kNone;  // of those that come next
  unsigned in_vain_ = 0;         // steps that were refused since something was taken
};

}  // namespace pando::manager
