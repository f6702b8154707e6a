#include "gallop/config/expression.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::config {
namespace {

double number(const std::string& text, const std::vector<Expression::Value>& values = {}) {
  return std::get<double>(Expression(text).evaluate(values));
}

std::string mistake(const std::string& text) {
  try {
    Expression expression(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Expression, FollowsTheOrderOfOperators) {
  EXPECT_EQ(number("1 + 2 * 3"), 7);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("10 - 4 - 3"), 3);
  EXPECT_EQ(number("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(number("-2 ^ 2"), -4);
  EXPECT_EQ(number("2 ^ -1"), 0.5);
  EXPECT_EQ(number("7 % 4 / 2"), 1.5);
  EXPECT_EQ(number("1 + 1 < 3 and 2 >= 2"), 1);
  EXPECT_EQ(number("true or false and false"), 1);
  EXPECT_EQ(number("not 1 == 2 and 3 != 3"), 0);
  EXPECT_EQ(number("not true or true"), 1);
}

TEST(Expression, RejectsChainedComparisons) {
  EXPECT_NE(mistake("0.2 < x < 0.4").find("join them with 'and'"), std::string::npos);
  EXPECT_NE(mistake("not 1 == 2 == 3").find("join them with 'and'"), std::string::npos);
  EXPECT_EQ(number("(1 < 2) == (2 < 3)"), 1);
}

TEST(Expression, AllowsForRoundingErrors) {
  for (const char* text : {"0.1 + 0.2 == 0.3",
                           "0.1 + 0.2 <= 0.3",
                           "not 0.1 + 0.2 > 0.3",
                           "0.3 - 0.2 >= 0.1",
                           "100.1 - 100 <= 0.1",
                           "not 1.1 - 1 > 0.1",
                           "3 * 0.1 == 0.3",
                           "0.3 / 0.1 == 3",
                           "1 / 3 * 3 == 1",
                           "0.1 * 3 - 0.3 == 0",
                           "0.3 % 0.1 == 0",
                           "0.7 % 0.1 == 0",
                           "1 % 0.1 == 0",
                           "0.35 % 0.1 == 0.05",
                           "floor(0.3 / 0.1) == 3",
                           "ceil(3 * 0.1 / 0.3) == 1",
                           "sqrt(0.1 + 0.2) ^ 2 == 0.3",
                           "0.1 ^ 2 == 0.01",
                           "exp(log(0.3)) == 0.1 + 0.2",
                           "max(0.1 + 0.2, 0) <= 0.3",
                           "abs(-0.1 - 0.2) <= 0.3",
                           "-(0.1 + 0.2) >= -0.3"}) {
    EXPECT_EQ(number(text), 1) << text;
  }
}

TEST(Expression, ComparesExactlyWithoutRounding) {
  // Values and integers are compared exactly, even if the next double is meant.
  EXPECT_TRUE(Expression("a < 0.3").holds({std::nextafter(0.3, 0)}));
  EXPECT_FALSE(Expression("a == 0.3").holds({std::nextafter(0.3, 1)}));
  for (const char* text :
       {"9007199254740991 + 1 > 9007199254740991", "7 % 4 == 3", "9007199254740991 % 2 == 1",
        "1e15 + 1 != 1e15", "94906265 ^ 2 % 2 == 1", "-7 % 4 == -3",
        "0.1 + 0.2 < 0.300000000000001", "0.1 + 0.2 > 0.299999999999999"}) {
    EXPECT_EQ(number(text), 1) << text;
  }
}

TEST(Expression, HasNanAndInfinity) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const char* text : {"a == a", "a < 1", "a or false", "a and true", "a + 1 <= 2"}) {
    EXPECT_EQ(number(text, {NAN}), 0) << text;
  }
  EXPECT_EQ(number("not a", {NAN}), 1);
  EXPECT_EQ(number("a != a", {NAN}), 1);
  EXPECT_TRUE(std::isnan(number("a % 0", {1.5})));
  for (const char* text :
       {"a == a", "a + 0.1 > 1", "a - 0.1 == a", "0.1 - a < 0.2", "1 % a == 1"}) {
    EXPECT_EQ(number(text, {inf}), 1) << text;
  }
}

TEST(Expression, KnowsFunctions) {
  EXPECT_EQ(number("min(3, 1, 2) + max(4, 5)"), 6);
  EXPECT_EQ(number("abs(-2) * sqrt(9) - floor(1.5) + ceil(0.5)"), 6);
  EXPECT_DOUBLE_EQ(number("log(exp(2))"), 2);
}

TEST(Expression, LooksUpNames) {
  const Expression expression("model.width * depth <= 64 and model.name == 'mlp' and depth > 1");
  EXPECT_EQ(expression.names(), (std::vector<std::string>{"model.width", "depth", "model.name"}));
  EXPECT_TRUE(expression.holds({16.0, 4.0, "mlp"}));
  EXPECT_FALSE(expression.holds({17.0, 4.0, "mlp"}));
  EXPECT_FALSE(expression.holds({16.0, 4.0, "vit"}));
  EXPECT_FALSE(Expression("order == 1").holds({1.5}));
  EXPECT_TRUE(Expression("order = 1.5").holds({1.5}));
  EXPECT_TRUE(Expression("orders or nothing").holds({1.0, 0.0}));
}

TEST(Expression, SupportsAnyNameInBackquotes) {
  const Expression expression(
      "metrics.`val-loss` < 1 and `params.learning rate`== 2 and `not` > 0");
  EXPECT_EQ(expression.names(),
            (std::vector<std::string>{"metrics.val-loss", "params.learning rate", "not"}));
  EXPECT_TRUE(expression.holds({0.5, 2.0, 1.0}));
  EXPECT_EQ(Expression("`true`").names(), (std::vector<std::string>{"true"}));
  EXPECT_EQ(mistake("`a"), "'`a': at letter 1: the quote is not closed");
  EXPECT_EQ(mistake("``(1)"), "'``(1)': at letter 3: unexpected text");
}

TEST(Expression, LimitsItsLength) {
  std::string sum = "1";
  for (int i = 1; i < 5000; ++i) sum += "+1";
  EXPECT_EQ(number(sum), 5000);
  for (int i = 0; i < 50000; ++i) sum += "+1";
  EXPECT_NE(mistake(sum).find("the formula is too long"), std::string::npos);
}

TEST(Expression, ReportsThePositionOfAMistake) {
  EXPECT_EQ(mistake("1 +"), "'1 +': at letter 4: a value is missing");
  EXPECT_EQ(mistake("1 2"), "'1 2': at letter 3: unexpected text");
  EXPECT_EQ(mistake("(1"), "'(1': at letter 3: ')' is missing");
  EXPECT_EQ(mistake("sin(1)"), "'sin(1)': at letter 5: unknown function 'sin'");
  EXPECT_EQ(mistake("sqrt(1, 2)"), "'sqrt(1, 2)': at letter 11: sqrt() takes one value");
  EXPECT_EQ(mistake("a == 'b"), "'a == 'b': at letter 6: the quote is not closed");
  EXPECT_NE(mistake(std::string(1000, '(')), "");
  EXPECT_NE(mistake(std::string(100'000, '-')), "");
  EXPECT_THROW(Expression("a < 2").holds({"mlp"}), UsageError);
  EXPECT_THROW(Expression("a").holds({"mlp"}), UsageError);
}

}  // namespace
}  // namespace gallop::config
