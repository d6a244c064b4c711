#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace pando {

/// An optional value that few owners have: absent, it takes the room of one pointer. Copies are
/// deep, and equality is that of the values, as with std::optional.
template <class T>
class RareValue {
 public:
  RareValue() noexcept = default;
  RareValue(std::nullopt_t) noexcept {}
  RareValue(const T& value) : value_(std::make_unique<T>(value)) {}
  RareValue(const std::optional<T>& value) : value_(copy_of(value ? &*value : nullptr)) {}
  RareValue(const RareValue& other) : value_(copy_of(other.value_.get())) {}
  RareValue(RareValue&&) noexcept = default;
  RareValue& operator=(const RareValue& other) {
    value_ = copy_of(other.value_.get());
    return *this;
  }
  RareValue& operator=(RareValue&&) noexcept = default;
  ~RareValue() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  void reset() noexcept { value_.reset(); }

  friend bool operator==(const RareValue& a, const RareValue& b) {
    return a && b ? *a == *b : !a && !b;
  }
  friend bool operator==(const RareValue& a, const T& b) { return a && *a == b; }

 private:
  static std::unique_ptr<T> copy_of(const T* value) {
    return value == nullptr ? nullptr : std::make_unique<T>(*value);
  }

  std::unique_ptr<T> value_;
};

}  // namespace pando
