#include "http/metrics/exposition.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace pando::http {

namespace {

constexpr std::string_view kOpenMetricsType = "application/openmetrics-text";

std::string_view word(MetricType type) noexcept {
  constexpr std::array<std::string_view, 3> kWords{"counter", "gauge", "histogram"};
  const auto index = static_cast<std::size_t>(type);
  return index < kWords.size() ? kWords[index] : "unknown";
}

}  // namespace

Format format_for(std::string_view accept) noexcept {
  const bool only_plain = accept.find(kOpenMetricsType) == accept.npos &&
                          accept.find("text/plain") != accept.npos;
  return only_plain ? Format::kPrometheus : Format::kOpenMetrics;
}

std::string_view content_type(Format format) noexcept {
  return format == Format::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (octet < 0x20 || octet >= 0x7F) {
      // As in zone files; single octets above 0x7F are no UTF-8.
      out += fmt::format("\\\\{:03}", octet);
    } else {
      out += c;
    }
  }
  return out;
}

void Exposition::head() {
  if (pending_ == nullptr) return;
  // Prometheus's format names a counter's family as its samples.
  const bool total = format_ == Format::kPrometheus && pending_->type == MetricType::kCounter;
  const std::string name = std::string(pending_->name) + (total ? "_total" : "");
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, pending_->help, name,
                       word(pending_->type));
  pending_ = nullptr;
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view le,
                      std::string_view value) {
  head();
  text_ += family_->name;
  text_ += suffix;
  char before = '{';
  const auto add = [&](std::string_view name, std::string_view text) {
    text_ += before;
    text_ += name;
    text_ += "=\"";
    text_ += escaped(text);
    text_ += '"';
    before = ',';
  };
  for (const Label& label : labels) add(label.name, label.value);
  if (!le.empty()) add("le", le);
  if (before == ',') text_ += '}';
  text_ += ' ';
  text_ += value;
  text_ += '\n';
}

void Exposition::sample(Labels labels, std::uint64_t value) {
  line(family_->type == MetricType::kCounter ? "_total" : "", labels, "", fmt::format("{}", value));
}

void Exposition::sample(Labels labels, double value) {
  line(family_->type == MetricType::kCounter ? "_total" : "", labels, "", fmt::format("{}", value));
}

void Exposition::bucket(Labels labels, double bound, std::uint64_t count) {
  line("_bucket", labels, std::isinf(bound) ? "+Inf" : fmt::format("{}", bound),
       fmt::format("{}", count));
}

void Exposition::sum(Labels labels, double sum, std::uint64_t count) {
  line("_sum", labels, "", fmt::format("{}", sum));
  line("_count", labels, "", fmt::format("{}", count));
}

std::string Exposition::finish() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace pando::http
