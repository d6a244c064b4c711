#include "config/zones.h"

#include <array>
#include <utility>

#include "config/added_zones.h"
#include "config/files.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMaxWords = 3;

/// Words of one line. At most kMaxWords + 1 are found; the extra word shows that the line has too
/// many.
struct Words {
  std::array<std::string_view, kMaxWords + 1> word;
  std::size_t count = 0;

  explicit Words(std::string_view line) {
    while (count < word.size()) {
      const auto start = line.find_first_not_of(kBlanks);
      if (start == std::string_view::npos) return;
      line.remove_prefix(start);
      word[count++] = line.substr(0, line.find_first_of(kBlanks));
      line.remove_prefix(word[count - 1].size());
    }
  }
};

/// Reads the lines of one list.
class ListReader {
 public:
  ListReader(Context& context, std::string file) : context_(context), file_(std::move(file)) {}

  void read(std::string_view text) {
    int line = 0;
    while (!text.empty() && !context_.problems.full()) {
      const auto end = text.find('\n');
      ++line;
      if (auto added = read_line(text.substr(0, end)); !added)
        context_.problems.error(file_, line, "", added.error().text);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

 private:
  Status read_line(std::string_view line) {
    const Words words(line);
    if (words.count == 0 || words.word[0].front() == '#') return {};
    if (words.count < 2 || words.count > kMaxWords)
      return fail(Errc::kInvalid, "a line is NAME FILE [TEMPLATE]");
    auto name = parse_name(words.word[0]);
    if (!name) return pass(name);
    std::uint32_t options = context_.default_options;
    if (words.count == kMaxWords) {
      const auto found = context_.templates.find(words.word[2]);
      if (found == context_.templates.end())
        return fail(Errc::kInvalid, "no template is named '{}'", words.word[2]);
      options = found->second;
    }
    return add_zone(context_, *name, words.word[1] == "-" ? "" : words.word[1], options);
  }

  Context& context_;
  std::string file_;
};

/// Limit of lists that are held open, because descriptors are few. A server with a list for each
/// customer reads the others immediately.
constexpr std::size_t kMaxOpenLists = 256;

/// Holds the list open for read_lists(): this process may be root now, and only root may be able to
/// read the list.
void leave_for_later(const Value& value, const std::string& file, Fd fd) {
  std::vector<UnreadList>& unread = value.context().unread;
  UnreadList list{file, value.path(), value.context().place_of(value.line()), {}};
  if (unread.size() < kMaxOpenLists) {
    list.fd = std::move(fd);
  } else if (!value.assign(read_open_file(fd, file), list.text)) {
    return;
  }
  unread.push_back(std::move(list));
}

void read_list_file(const Value& value, const std::string& file) {
  Context& context = value.context();
  auto fd = open_regular_file(file);
  if (!fd) return value.fail(fd.error().text);
  // The fingerprint comes before the reading: a list that changes meanwhile then differs at the
  // next check.
  if (!value.assign(fold_file(context.fingerprint, *fd, file), context.fingerprint)) return;
  context.sources.lists.push_back(file);
  if (context.options.lists_later) return leave_for_later(value, file, std::move(*fd));
  auto text = read_open_file(*fd, file);
  if (!text) return value.fail(text.error().text);
  ListReader(context, file).read(*text);
}

void read_pattern(const Value& value) {
  const auto text = value.scalar();
  if (!text) return;
  if (text->empty()) return value.fail("is empty");
  const auto files = matching_files(value.context().folder, *text);
  if (!files) return value.fail(files.error().text);
  for (const std::string& file : *files) read_list_file(value, file);
}

}  // namespace

void read_unread_list(Context& context, const UnreadList& list) {
  if (list.added) return read_added_file(context, list.file);
  auto text = list.fd ? read_open_file(list.fd, list.file) : Result<std::string>(list.text);
  if (!text)
    return context.problems.error(list.place.file, list.place.line, list.key, text.error().text);
  ListReader(context, list.file).read(*text);
}

void read_zone_lists(const Value& value) {
  if (value.is_null()) return;
  value.for_each([](const Value& element) {
    if (element.context().options.read_zone_lists) read_pattern(element);
  });
}

}  // namespace pando::config
