#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dns/types.h"
#include "tests/support/trees.h"

namespace pando::dns::tests {

/// One record of tests/data/rdata/samples.txt.
struct RdataSample {
  RRType type{};
  std::string type_name;
  std::string text;     ///< as an operator may write it
  std::string printed;  ///< as we print it
  std::string hex;      ///< on the wire
};

/// "TYPE REST" apart.
inline std::pair<std::string, std::string> split_type(const std::string& line) {
  const std::size_t blank = std::min(line.find(' '), line.size());
  return {line.substr(0, blank), line.substr(std::min(blank + 1, line.size()))};
}

inline std::vector<RdataSample> load_rdata_samples() {
  std::ifstream file(pando::tests::source_path("/tests/data/rdata/samples.txt"));
  std::vector<RdataSample> samples;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == ';') continue;
    const std::string value = line.size() > 4 ? line.substr(4) : "";
    if (line.starts_with("  =")) {
      samples.back().printed = value;
    } else if (line.starts_with("  #")) {
      samples.back().hex = value;
    } else {
      auto [name, text] = split_type(line);
      auto type = rrtype_from_text(name);
      samples.push_back({type ? *type : RRType{}, name, text, text, ""});
    }
  }
  return samples;
}

/// A line of tests/data/rdata/bad.txt and the error that follows it ("!").
struct BadRdata {
  RRType type{};
  std::string line;
  std::string text;
  std::string error;
};

inline std::vector<BadRdata> load_bad_rdata() {
  std::ifstream file(pando::tests::source_path("/tests/data/rdata/bad.txt"));
  std::vector<BadRdata> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == ';') continue;
    if (line.starts_with("  ! ")) {
      all.back().error = line.substr(4);
      continue;
    }
    const auto [name, text] = split_type(line);
    auto type = rrtype_from_text(name);
    all.push_back({type ? *type : RRType{}, line, text, ""});
  }
  return all;
}

}  // namespace pando::dns::tests
