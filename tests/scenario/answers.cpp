// Runs tests/scenario/answers/*.scn against resolve() and render(), without sockets. The format of
// the files is described in scenario_file.h.

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>
#include <set>

#include "base/build.h"
#include "tests/scenario/response.h"
#include "tests/scenario/scenario_file.h"
#include "tests/scenario/zone_store.h"
#include "tests/support/trees.h"
#include "worker/answer/render.h"
#include "worker/answer/resolve.h"
#include "zone/read/read_ahead.h"

namespace {

std::size_t allocations = 0;

// Not inlined: GCC would see malloc paired with delete and warn.
[[gnu::noinline]] void* counted_malloc(std::size_t octets) {
  ++allocations;
  return std::malloc(octets);
}

/// OpenSSL allocates by functions of its own; must happen before its first use.
const bool openssl_is_counted =
    CRYPTO_set_mem_functions(
        [](std::size_t octets, const char*, int) { return counted_malloc(octets); },
        [](void* memory, std::size_t octets, const char*, int) {
          ++allocations;
          return std::realloc(memory, octets);
        },
        [](void* memory, const char*, int) { std::free(memory); }) == 1;

}  // namespace

// Counts what the code under test takes from the heap.
[[gnu::noinline]] void* operator new(std::size_t octets) {
  if (void* memory = counted_malloc(octets)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t octets, const std::nothrow_t&) noexcept {
  return counted_malloc(octets);
}
#ifdef PANDO_WITH_SANITIZER  // else base/secret.cpp may have these, or the library, which free alike
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace scenario {
namespace {

using pando::worker::Answer;

const std::string kFolder = pando::tests::source_path("/tests/scenario");

struct Case {
  std::shared_ptr<const File> file;
  const Query* query;
};

std::vector<Case> load_cases() {
  std::vector<Case> cases;
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/answers"))
    if (entry.path().extension() == ".scn") paths.insert(entry.path());
  for (const auto& path : paths) {
    const auto file = std::make_shared<const File>(Parser(path.string()).parse());
    for (const Query& query : file->queries) cases.push_back({file, &query});
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::filesystem::path(info.param.file->path).stem().string() + "_line_" +
                     std::to_string(info.param.query->line) + "_" + info.param.query->type;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

/// The zones of the file that is being run; the cases of one file come one after another.
const ZoneStore& store_of(const File& file) {
  static std::unique_ptr<ZoneStore> store;
  static std::string path;
  if (path != file.path) {
    store.reset();
    store = std::make_unique<ZoneStore>(file.zones, kFolder + "/zones");
    path = file.path;
  }
  return *store;
}

class Scenario : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Query& query = *GetParam().query;
    question_.name = need(pando::dns::Name::from_text(query.name));
    question_.type = need(pando::dns::rrtype_from_text(query.type));
    question_.rr_class = pando::dns::RRClass::kIN;
    options_ = {.dnssec_ok = query.dnssec_ok,
                .minimal_responses = !query.full,
                .zone_expired = query.expired};
    resolve();
  }

  void resolve() {
    const auto zone = pando::worker::choose_zone(store_of(*GetParam().file).view(), question_.name,
                                                 question_.type);
    pando::worker::resolve(zone, question_, options_, hasher_, answer_);
  }

  /// The message when at most `limit` octets may be used.
  pando::ByteView render_within(std::size_t limit) {
    pando::dns::MessageWriter writer(space_, limit);
    pando::dns::Header header;
    header.qr = true;
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(question_.name, question_.type, question_.rr_class));
    pando::worker::render(answer_, question_, writer);
    return writer.finish();
  }

  std::string head_of(const Response& response) const {
    return response.head +
           (answer_.ede ? " ede=" + std::to_string(static_cast<unsigned>(*answer_.ede)) : "");
  }

  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  pando::dns::Question question_;
  pando::worker::ResolveOptions options_;
  pando::dns::Nsec3Hasher hasher_;
  Answer answer_;
};

std::string listing(const std::string& head, const std::vector<std::string> (&sections)[3]) {
  static const char* const kNames[] = {"answer", "authority", "additional"};
  std::string text = "  " + head + "\n";
  for (int i = 0; i < 3; ++i) {
    if (!sections[i].empty()) text += "  " + std::string(kNames[i]) + "\n";
    for (const auto& line : sections[i]) text += "    " + line + "\n";
  }
  return text;
}

/// Each expected line takes away one line that it matches.
bool same_records(const std::vector<std::string>& expected, std::vector<std::string> actual,
                  std::string& error) {
  for (const auto& line : expected) {
    const std::string wanted = canonical_line(line, error);
    const auto found = std::find_if(actual.begin(), actual.end(),
                                    [&](const auto& got) { return line_matches(wanted, got); });
    if (found == actual.end()) return false;
    actual.erase(found);
  }
  return actual.empty();
}

TEST_P(Scenario, AnswersAsWritten) {
  const Query& query = *GetParam().query;
  const Response response = read_response(render_within(query.size));
  std::string error = response.error;
  bool same = head_of(response) == query.expected.head;
  for (int i = 0; i < 3; ++i)
    same = same_records(query.expected.sections[i], response.sections[i], error) && same;
  EXPECT_EQ(error, "");
  EXPECT_TRUE(same) << GetParam().file->path << ":" << query.line << ": " << query.title << "\n"
                    << query.name << " " << query.type << "\nexpected:\n"
                    << listing(query.expected.head, query.expected.sections) << "got:\n"
                    << listing(head_of(response), response.sections);
}

/// "owner type" or, for signatures, "owner type covered".
std::string rrset_key(const std::string& line) {
  std::istringstream words(line);
  std::string owner, ttl, type, covered;
  words >> owner >> ttl >> type >> covered;
  return owner + " " + type + (type == "rrsig" ? " " + covered : "");
}

/// The key of the signatures of the RRset "owner type".
std::string signature_key(const std::string& key) {
  const auto border = key.find(' ');
  return key.substr(0, border) + " rrsig" + key.substr(border);
}

std::map<std::string, int> count_rrsets(const Response& response, int section) {
  std::map<std::string, int> counts;
  for (const auto& line : response.sections[section]) ++counts[rrset_key(line)];
  return counts;
}

TEST_P(Scenario, IsTheSameWhenItsNameIsReadAheadWithOthers) {
  const pando::ByteView message = render_within(65535);
  const std::vector<std::uint8_t> alone(message.begin(), message.end());
  const pando::zone::StoreView view = store_of(*GetParam().file).view();
  std::vector<pando::dns::Name> names{question_.name};
  for (const Query& query : GetParam().file->queries)
    if (names.size() < pando::zone::ReadAhead::kNames)
      names.push_back(need(pando::dns::Name::from_text(query.name)));
  pando::zone::ReadAhead ahead;
  for (const auto& name : names) ahead.add(name, options_.dnssec_ok);
  ahead.run(view);
  options_.key = &ahead.key(0);
  const auto zone = pando::worker::choose_zone(view, ahead.key(0), question_.type, ahead.zone(0));
  if (zone && zone.is_same(ahead.zone(0))) options_.match = &ahead.match(0);
  pando::worker::resolve(zone, question_, options_, hasher_, answer_);
  const pando::ByteView again = render_within(65535);
  EXPECT_EQ(std::vector<std::uint8_t>(again.begin(), again.end()), alone);
}

TEST_P(Scenario, TakesNothingFromTheHeap) {
  ASSERT_TRUE(openssl_is_counted);
  const std::size_t before = allocations;
  resolve();
  render_within(65535);
  EXPECT_EQ(allocations, before);
}

TEST_P(Scenario, GivesNoRecordTwice) {
  const Response response = read_response(render_within(65535));
  std::set<std::string> seen;
  for (const auto& section : response.sections)
    for (const auto& line : section) EXPECT_TRUE(seen.insert(line).second) << line;
}

// RFC 2181 §9: a cut-off message has whole RRsets only, and TC tells when one that was needed is
// missing; what is optional may be missing without it.
TEST_P(Scenario, TruncatesOnRRsetBorders) {
  const pando::ByteView whole = render_within(65535);
  const Response full = read_response(whole);
  const std::size_t smallest = pando::dns::kHeaderOctets + question_.name.size() + 4;
  for (std::size_t limit = smallest; limit < whole.size(); limit += 7) {
    const pando::ByteView message = render_within(limit);
    ASSERT_LE(message.size(), limit);
    const Response cut = read_response(message);
    ASSERT_EQ(cut.error, "");
    for (int section = 0; section < 3; ++section) {
      const auto all = count_rrsets(full, section), left = count_rrsets(cut, section);
      for (const auto& [key, count] : left) ASSERT_EQ(count, all.at(key)) << key << " at " << limit;
      for (const auto& [key, count] : left)
        ASSERT_EQ(all.count(signature_key(key)), left.count(signature_key(key)))
            << "signatures of " << key << " at " << limit;
    }
    const bool complete =
        cut.sections[0] == full.sections[0] && cut.sections[1] == full.sections[1];
    const bool must_tell = !complete && !GetParam().query->full;
    ASSERT_TRUE(!must_tell || cut.head.ends_with(" tc")) << cut.head << " at " << limit;
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, Scenario, ::testing::ValuesIn(load_cases()), case_name);

}  // namespace
}  // namespace scenario
