#pragma once

#include <cstddef>
#include <cstdint>

namespace pando::manager {

/// Chooses how many zones to try in one step, when the store may lack space for all. The first try
/// takes all zones; each refusal halves the number, until the first zone without space is found.
/// One search costs some ten steps. A full store costs few steps in total, whatever the number of
/// slices.
class SpaceSearch {
 public:
  /// 0: the next zone lacks space. If gives_up(), none of the following zones is tried either.
  [[nodiscard]] std::size_t most() const noexcept {
    if (refused_ == kNone) return kNone;
    return gives_up() ? 0 : refused_ / 2;
  }
  [[nodiscard]] bool gives_up() const noexcept { return in_vain_ > kMaxInVain; }

  /// The next `zones` (at least one) together lacked space.
  void refused(std::size_t zones) noexcept {
    ++in_vain_;
    refused_ = zones;
  }
  /// The next `zones`, at most most(), were taken.
  void taken(std::size_t zones) noexcept {
    if (zones > 0) in_vain_ = 0;
    if (refused_ != kNone) refused_ -= zones;
  }
  /// Starts over with the following zones.
  void next() noexcept { refused_ = kNone; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  /// Enough to find three or four zones without space in a slice whose other zones fit.
  static constexpr unsigned kMaxInVain = 32;

  std::size_t refused_ = kNone;  // zones of the last refused try that are left
  unsigned in_vain_ = 0;         // refused steps since a zone was taken
};

}  // namespace pando::manager
