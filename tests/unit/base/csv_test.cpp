#include "gallop/base/csv.h"

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(Csv, QuotesSeparatorsAndNewlines) {
  EXPECT_EQ(csv_line({"a", "b c", "", "1"}), "a,b c,,1\r\n");
  EXPECT_EQ(csv_line({"a,b", "say \"x\"", "two\nlines"}),
            "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
}

TEST(Csv, EscapesFormulas) {
  EXPECT_EQ(csv_line({"=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1"}),
            "'=1+1,'+A1,'-A1,'@SUM(A1),'\t=1\r\n");
  EXPECT_EQ(csv_line({"=HYPERLINK(\"http://evil.example\")"}),
            "\"'=HYPERLINK(\"\"http://evil.example\"\")\"\r\n");
  EXPECT_EQ(csv_line({"-0.5", "-1e-07", "-inf", "a=b"}), "-0.5,-1e-07,-inf,a=b\r\n");
}

}  // namespace
}  // namespace gallop
