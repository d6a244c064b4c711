#include "manager/systemd/kept_socket.h"

#include <fmt/format.h>

#include <charconv>

namespace pando::manager::systemd {

namespace {

constexpr std::string_view kPrefix = "worker";

/// Takes "-NUMBER" from the beginning of `text`.
template <class Number>
bool take_field(std::string_view& text, Number& number) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_text(const KeptSocket& socket) {
  return fmt::format("{}-{}-{}-{}", kPrefix, socket.slot, socket.position, socket.cookie);
}

std::optional<KeptSocket> kept_socket_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  KeptSocket socket;
  const bool is_whole = take_field(name, socket.slot) && take_field(name, socket.position) &&
                        take_field(name, socket.cookie) && name.empty();
  return is_whole ? std::optional(socket) : std::nullopt;
}

}  // namespace pando::manager::systemd
