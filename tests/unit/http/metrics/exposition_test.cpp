#include "http/metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

namespace pando::http {
namespace exposition_test {

constexpr Family kRequests{"x_requests", MetricType::kCounter, "Requests."};
constexpr Family kLevel{"x_level", MetricType::kGauge, "A level."};
constexpr Family kTime{"x_time_seconds", MetricType::kHistogram, "Times."};

std::string text_of(Format format) {
  Exposition out(format);
  out.begin(kRequests);
  out.sample({{"worker", "0"}, {"transport", "udp"}}, std::uint64_t{7});
  out.begin(kLevel);
  out.sample({}, 0.25);
  return out.finish();
}

TEST(Exposition, NamesACounterAsEachFormatDoes) {
  EXPECT_EQ(text_of(Format::kOpenMetrics),
            "# HELP x_requests Requests.\n# TYPE x_requests counter\n"
            "x_requests_total{worker=\"0\",transport=\"udp\"} 7\n"
            "# HELP x_level A level.\n# TYPE x_level gauge\nx_level 0.25\n# EOF\n");
  EXPECT_EQ(text_of(Format::kPrometheus),
            "# HELP x_requests_total Requests.\n# TYPE x_requests_total counter\n"
            "x_requests_total{worker=\"0\",transport=\"udp\"} 7\n"
            "# HELP x_level A level.\n# TYPE x_level gauge\nx_level 0.25\n");
}

TEST(Exposition, LeavesFamiliesWithoutSamplesOut) {
  Exposition out(Format::kOpenMetrics);
  out.begin(kRequests);
  out.begin(kLevel);
  EXPECT_EQ(out.finish(), "# EOF\n");
}

TEST(Exposition, HistogramsEndWithInfinity) {
  Exposition out(Format::kPrometheus);
  out.begin(kTime);
  out.bucket({{"w", "1"}}, 0.001, 3);
  out.bucket({{"w", "1"}}, std::numeric_limits<double>::infinity(), 4);
  out.sum({{"w", "1"}}, 1.5, 4);
  EXPECT_EQ(out.finish(),
            "# HELP x_time_seconds Times.\n# TYPE x_time_seconds histogram\n"
            "x_time_seconds_bucket{w=\"1\",le=\"0.001\"} 3\n"
            "x_time_seconds_bucket{w=\"1\",le=\"+Inf\"} 4\n"
            "x_time_seconds_sum{w=\"1\"} 1.5\nx_time_seconds_count{w=\"1\"} 4\n");
}

/// A zone's name is what its owner likes; in the metrics of others it must not end a label.
TEST(Exposition, HostileLabelsEndNeitherLabelNorLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"plain.example.", "plain.example."},
      {"a\"} 1\nevil 2", R"(a\"} 1\nevil 2)"},
      {"back\\slash", R"(back\\slash)"},
      {"\x01\x7F\xC3\x28", R"(\\001\\127\\195()"},
      {std::string_view("nul\0", 4), R"(nul\\000)"},
      {"a\\\"b", R"(a\\\"b)"},
  };
  for (const auto& [name, expected] : cases) EXPECT_EQ(escaped(name), expected);
}

TEST(Exposition, TheClientChoosesTheFormat) {
  const std::pair<std::string_view, Format> cases[] = {
      {"", Format::kOpenMetrics},
      {"*/*", Format::kOpenMetrics},
      {"text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Format::kPrometheus},
      {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
       Format::kOpenMetrics},
  };
  for (const auto& [accept, format] : cases) EXPECT_EQ(format_for(accept), format) << accept;
}

}  // namespace exposition_test
}  // namespace pando::http
