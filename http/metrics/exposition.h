#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// The text formats of metrics: OpenMetrics 1.0.0, and Prometheus's own 0.0.4.
namespace pando::http {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

/// A metric family: one row of docs/reference/metrics.md. A counter's name is without "_total".
struct Family {
  std::string_view name;
  MetricType type = MetricType::kGauge;
  std::string_view help;
};

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::initializer_list<Label>;

enum class Format : std::uint8_t { kOpenMetrics, kPrometheus };
/// The format for a client with this Accept field: Prometheus's only when the field names
/// text/plain and not OpenMetrics.
[[nodiscard]] Format format_for(std::string_view accept) noexcept;
[[nodiscard]] std::string_view content_type(Format format) noexcept;

/// `text` escaped for the quotes of a label: no content of it ends the label or the line, and the
/// result is UTF-8.
[[nodiscard]] std::string escaped(std::string_view text);

/// Writes families, one after the other. A family without samples is left out.
class Exposition {
 public:
  explicit Exposition(Format format) : format_(format) {}

  /// The following samples are of this family, which must not have been begun before.
  void begin(const Family& family) noexcept { pending_ = family_ = &family; }
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, double value);
  /// Of a histogram: `count` observations of at most `bound`; all buckets of one set of labels in
  /// ascending order, infinity last, then sum() once.
  void bucket(Labels labels, double bound, std::uint64_t count);
  void sum(Labels labels, double sum, std::uint64_t count);
  /// The whole text.
  [[nodiscard]] std::string finish();

 private:
  void line(std::string_view suffix, Labels labels, std::string_view le, std::string_view value);
  void head();

  Format format_;
  const Family* family_ = nullptr;
  const Family* pending_ = nullptr;  ///< has no sample yet
  std::string text_;
};

}  // namespace pando::http
