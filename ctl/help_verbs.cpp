#include <fmt/format.h>

#include <iostream>

#include "ctl/misspelt_words.h"
#include "ctl/verbs.h"
#include "ctl/view/json_text.h"

namespace pando::ctl {

namespace {

void print_text(const Output& output, const char* member, const std::string& text) {
  if (output.json)
    output.out << json_text({{member, text}}) << '\n';
  else
    output.out << text << (text.ends_with('\n') ? "" : "\n");
}

int print_help(const CLI::App& root, const std::vector<std::string>& words, const Output& output) {
  const auto page = help_page(root, words);
  if (!page) return refuse(output, page.error(), kUsage);
  print_text(output, "help", *page);
  return kDone;
}

}  // namespace

void add_help_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  line.add(root, "help", "the verbs, or the words and options of one",
           [root, &given] { return print_help(*root, given.words, output_for(given)); })
      ->add_option("verb", given.words, "words of the verb");
  line.add(root, "version", "the version of pandoctl", [&given] {
    print_text(output_for(given), "version", PANDO_VERSION);
    return kDone;
  });
}

}  // namespace pando::ctl
