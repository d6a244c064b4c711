#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"

/// Moves struct members to and from JSON objects with every type checked, without exceptions.
namespace pando::ipc {

/// Writes members into an object, also empty ones: programs need no defaults.
class FieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = value;
  }
  [[nodiscard]] nlohmann::json take() { return std::move(object_); }

 private:
  nlohmann::json object_ = nlohmann::json::object();
};

/// Reads members from an object. The first wrong type is remembered; absent fields keep their
/// values.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& object) : object_(object) {
    if (!object.is_object()) problem_ = "not a JSON object";
  }

  template <class T>
  void operator()(const char* name, T& out) {
    if (!object_.is_object()) return;
    const auto found = object_.find(name);
    if (found == object_.end() || read(*found, out)) return;
    if (problem_.empty()) problem_ = fmt::format("field '{}' has the wrong type", name);
  }
  [[nodiscard]] Status status() const {
    if (!problem_.empty()) return fail(Errc::kInvalid, "{}", problem_);
    return {};
  }

 private:
  static bool read(const nlohmann::json& value, std::string& out) {
    if (value.is_string()) out = value.get_ref<const std::string&>();
    return value.is_string();
  }
  static bool read(const nlohmann::json& value, bool& out) {
    if (value.is_boolean()) out = value.get<bool>();
    return value.is_boolean();
  }
  template <class Number>
    requires std::is_unsigned_v<Number>
  static bool read(const nlohmann::json& value, Number& out) {
    if (!value.is_number_unsigned()) return false;
    const auto number = value.get<std::uint64_t>();
    if (number > std::numeric_limits<Number>::max()) return false;
    out = static_cast<Number>(number);
    return true;
  }
  template <class T>
  static bool read(const nlohmann::json& value, std::vector<T>& out) {
    if (!value.is_array()) return false;
    for (const auto& element : value)
      if (T item{}; read(element, item))
        out.push_back(std::move(item));
      else
        return false;
    return true;
  }
  template <class T>
  static bool read(const nlohmann::json& value, std::map<std::string, T>& out) {
    if (!value.is_object()) return false;
    for (auto it = value.begin(); it != value.end(); ++it)
      if (!read(it.value(), out[it.key()])) return false;
    return true;
  }

  const nlohmann::json& object_;
  std::string problem_;
};

}  // namespace pando::ipc
