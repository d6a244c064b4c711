#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pando {

/// XXH3 (64 bits) of bytes that come piece by piece, to tell whether a file has changed since it
/// was read. The hash detects edits, not attacks: two files with one hash can be constructed.
class ContentHash {
 public:
  ContentHash() noexcept;
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(const void* data, std::size_t bytes);
  /// The hash of all added bytes; never 0, which stands for "not known" wherever hashes are kept.
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: nothing was added
};

}  // namespace pando
