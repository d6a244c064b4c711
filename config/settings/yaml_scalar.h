#pragma once

#include <string>
#include <string_view>

#include "base/address.h"
#include "dns/name.h"

/// Scalars as YAML text that every reader of YAML takes for the same text.
namespace pando::config {

/// Whether `text` needs no quotes: no reader takes it for anything but text.
[[nodiscard]] bool is_plain_scalar(std::string_view text);
/// `text`, in double quotes where a plain scalar could mean something else.
[[nodiscard]] std::string yaml_scalar(std::string_view text);
/// A name without its final dot, which a configuration may leave out.
[[nodiscard]] std::string yaml_name(dns::NameView name);
/// A prefix; an address alone has no length.
[[nodiscard]] std::string prefix_text(const IpPrefix& prefix);

/// "[a, b]" with the text that `show` gives for each element.
template <class List, class Show>
std::string flow_list(const List& list, Show show) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + std::string(show(item));
  return "[" + text + "]";
}

}  // namespace pando::config
