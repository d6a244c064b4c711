#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// The files tests/scenario/answers/*.scn: zones, questions and what must be answered, in
/// presentation format.
///
///   # a comment
///   zone example. {            zone text up to a line "}"; $ORIGIN is the zone's name
///   @ 3600 SOA ...
///   }
///   zone example. FILE         a file of tests/scenario/zones
///   zone example. unloaded     configured, but without data
///   == TITLE                   of the questions behind it
///   query NAME TYPE [do] [full] [expired] [size=OCTETS]
///     NOERROR aa tc ede=14     RCODE, then those flags that are set, and the extended error
///     answer
///       OWNER TTL TYPE RDATA   in any order; a final "..." stands for any rest of the RDATA
///     authority
///     additional
///
/// `do`: DO bit. `full`: minimal-responses is off. `expired`: the zone has expired. `size`: the
/// largest message, without OPT. A section that is not given is empty.
namespace scenario {

struct Zone {
  std::string name;
  std::string file;  ///< empty: `text`
  std::string text;
  bool loaded = true;
};

struct Expected {
  std::string head;
  std::vector<std::string> sections[3];  ///< answer, authority, additional
};

struct Query {
  std::size_t line = 0;
  std::string title, name, type;
  bool dnssec_ok = false, full = false, expired = false;
  std::size_t size = 65535;
  Expected expected;
};

struct File {
  std::string path;
  std::vector<Zone> zones;
  std::vector<Query> queries;
};

class Parser {
 public:
  explicit Parser(const std::string& path) : stream_(path) {
    file_.path = path;
    if (!stream_) throw std::runtime_error("cannot open " + path);
  }

  File parse() {
    for (std::string line; next(line);) {
      const auto words = split(line);
      if (words.empty() || line[0] == '#') continue;
      if (words[0] == "zone" && words.size() == 3)
        read_zone(words);
      else if (words[0] == "==")
        title_ = line.substr(3);
      else if (words[0] == "query" && words.size() >= 3)
        read_query(words);
      else if (!file_.queries.empty() && line[0] == ' ')
        read_expected(line, words);
      else
        fail("cannot read '" + line + "'");
    }
    return std::move(file_);
  }

 private:
  bool next(std::string& line) { return ++line_, static_cast<bool>(std::getline(stream_, line)); }

  static std::vector<std::string> split(const std::string& line) {
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(file_.path + ":" + std::to_string(line_) + ": " + why);
  }

  void read_zone(const std::vector<std::string>& words) {
    Zone zone{words[1], {}, {}, words[2] != "unloaded"};
    if (words[2] == "{") {
      std::string line;
      while (next(line) && line != "}") zone.text += line + "\n";
    } else if (zone.loaded) {
      zone.file = words[2];
    }
    file_.zones.push_back(zone);
  }

  void read_query(const std::vector<std::string>& words) {
    Query query;
    query.line = line_;
    query.title = title_;
    query.name = words[1];
    query.type = words[2];
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (words[i] == "do")
        query.dnssec_ok = true;
      else if (words[i] == "full")
        query.full = true;
      else if (words[i] == "expired")
        query.expired = true;
      else if (words[i].rfind("size=", 0) == 0)
        query.size = std::stoul(words[i].substr(5));
      else
        fail("unknown option " + words[i]);
    }
    file_.queries.push_back(query);
    section_ = -1;
  }

  void read_expected(const std::string& line, const std::vector<std::string>& words) {
    static const char* const kNames[] = {"answer", "authority", "additional"};
    Expected& expected = file_.queries.back().expected;
    if (expected.head.empty()) {
      expected.head = join(words, 0);
      return;
    }
    for (int i = 0; i < 3 && words.size() == 1; ++i) {
      if (words[0] != kNames[i]) continue;
      section_ = i;
      return;
    }
    if (section_ < 0 || words.size() < 4) fail("not a record: '" + line + "'");
    expected.sections[section_].push_back(line.substr(line.find_first_not_of(' ')));
  }

  static std::string join(const std::vector<std::string>& words, std::size_t first) {
    std::string text;
    for (std::size_t i = first; i < words.size(); ++i) text += (i > first ? " " : "") + words[i];
    return text;
  }

  std::ifstream stream_;
  std::size_t line_ = 0;
  std::string title_;
  int section_ = -1;
  File file_;
};

}  // namespace scenario
