#include "dns/text.h"

#include <array>

namespace pando::dns {

namespace {

/// Form of an octet in a name: plain, after a backslash, or as \DDD (RFC 1035 §5.1).
enum class Form : std::uint8_t { kPlain, kEscaped, kDecimal };

constexpr std::array<Form, 256> make_forms() {
  std::array<Form, 256> forms{};
  for (std::size_t i = 0; i < forms.size(); ++i)
    forms[i] = i <= 0x20 || i >= 0x7F ? Form::kDecimal : Form::kPlain;
  for (const char c : std::string_view(".\\\";()@$"))
    forms[static_cast<std::uint8_t>(c)] = Form::kEscaped;
  return forms;
}
constexpr std::array<Form, 256> kForms = make_forms();

void append_octet(std::string& out, std::uint8_t octet) {
  if (kForms[octet] == Form::kDecimal) {
    const auto digit = [](int value) { return static_cast<char>('0' + value % 10); };
    out += {'\\', digit(octet / 100), digit(octet / 10), digit(octet)};
    return;
  }
  if (kForms[octet] == Form::kEscaped) out += '\\';
  out += static_cast<char>(octet);
}

void append_label(std::string& out, ByteView label) {
  const auto* const begin = reinterpret_cast<const char*>(label.data());
  const std::size_t start = out.size();
  out.append(begin, label.size());  // nearly always without escapes
  for (const std::uint8_t octet : label) {
    if (kForms[octet] == Form::kPlain) continue;
    out.erase(start);
    for (const std::uint8_t each : label) append_octet(out, each);
    return;
  }
}

}  // namespace

void append_labels_text(std::string& out, ByteView labels) {
  std::size_t at = 0;
  while (at < labels.size() && labels[at] != 0) {
    if (at != 0) out += '.';
    append_label(out, labels.subspan(at + 1, labels[at]));
    at += labels[at] + 1U;
  }
  if (at < labels.size()) out += '.';  // the name ends in the root
}

std::string quote_for_message(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  shown += text.size() > kShown ? "...'" : "'";
  return shown;
}

}  // namespace pando::dns
