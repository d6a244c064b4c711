#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pando {

/// XXH3 (64 bits) of octets that come piece by piece, to tell whether a file is the one that was
/// read before. It finds edits, not intent: two files of one hash can be made.
class ContentHash {
 public:
  ContentHash() noexcept;
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(const void* data, std::size_t octets);
  /// Of all that was added; never 0, which stands for "not known" wherever hashes are kept.
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: nothing was added
};

}  // namespace pando
