#include "gallop/base/shell.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/child_process.h"

namespace gallop {
namespace {

TEST(ShellWord, RoundTripsThroughTheShell) {
  const std::vector<std::string> words = {"plain",     "",           "two words",
                                          "it's",      "'",          "''",
                                          "\"$HOME\"", "$(id)",      "`id`",
                                          "a\nb",      "\n",         "tab\t",
                                          "\\",        "a\\'b",      "*",
                                          "~",         "#x",         "!!",
                                          "a;b&c",     "<in>out|",   "{a,b}",
                                          "x=1",       "ä \xC2\xA0", "-n",
                                          "[a-z]?(*)", "\r\n",       "data.path=~/x y"};
  for (const char* shell : {"sh", "bash"}) {
    std::string script = "printf '%s\\0'", wanted;
    for (const std::string& word : words) {
      script += " " + shell_word(word);
      wanted += word + '\0';
    }
    EXPECT_EQ(run_to_end({.program = shell, .arguments = {"-c", script}}).output, wanted);
  }
  EXPECT_EQ(shell_word("optimizer.lr=0.1"), "optimizer.lr=0.1");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(ShellWord, JoinsWords) {
  EXPECT_EQ(shell_line({"gallop", "train", "my recipe.yaml"}), "gallop train 'my recipe.yaml'");
  EXPECT_EQ(shell_line({}), "");
}

}  // namespace
}  // namespace gallop
