#pragma once

#include <cstdint>
#include <utility>

namespace pando::manager {

/// Which reload may begin, and when: one at a time, none before allow(), none while a change of
/// single zones holds the gate, and none that comes after stop().
class ReloadGate {
 public:
  /// A reload comes, and ends with leave(). False: another one, or the end of the process, is under
  /// way.
  [[nodiscard]] bool enter() noexcept { return !stopping_ && !std::exchange(under_way_, true); }
  /// Whether a reload that has entered may begin; if not, it waits for allow() or release().
  [[nodiscard]] bool is_open() const noexcept { return allowed_ && !held_; }
  [[nodiscard]] bool is_under_way() const noexcept { return under_way_; }
  /// A reload ends. True: a signal asks for another one.
  [[nodiscard]] bool leave() noexcept {
    under_way_ = false;
    return std::exchange(again_, false);
  }

  enum class Signal : std::uint8_t {
    kEnters,   ///< enter() is for it
    kWaits,    ///< it is the first that waits for leave()
    kIsServed  ///< by one that waits
  };
  /// A signal asks for a reload. One more reload serves all signals that come during another one.
  [[nodiscard]] Signal signal() noexcept {
    if (!under_way_ || stopping_) return Signal::kEnters;
    return std::exchange(again_, true) ? Signal::kIsServed : Signal::kWaits;
  }

  /// Keeps reloads waiting until release(). False during a reload, before allow(), after stop(), or
  /// while the gate is held.
  [[nodiscard]] bool hold() noexcept {
    if (!allowed_ || under_way_ || stopping_) return false;
    return !std::exchange(held_, true);
  }
  void release() noexcept { held_ = false; }

  void allow() noexcept { allowed_ = true; }
  [[nodiscard]] bool is_allowed() const noexcept { return allowed_; }
  void stop() noexcept { stopping_ = true; }

 private:
  bool allowed_ = false;
  bool under_way_ = false;
  bool held_ = false;
  bool again_ = false;  // a signal came during a reload
  bool stopping_ = false;
};

}  // namespace pando::manager
