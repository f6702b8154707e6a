// Tables of CSV: dialects, types, targets, missing values, splits.
#include "gallop/data/table.h"

#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gallop/config/resolve.h"
#include "gallop/data/gzip.h"
#include "gallop/data/table/table_reader.h"
#include "unit/data/expect_error.h"
#include "unit/data/image_fields.h"
#include "unit/data/table_folder.h"

namespace gallop::data {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

TEST_F(Tables, SeparatorsAreDetected) {
  EXPECT_EQ(numbers("a,b\n1,2\n3,4\n"), (Numbers{1, 3}));
  EXPECT_EQ(numbers("a\tb\n1\t2\n3\t4\n"), (Numbers{1, 3}));
  EXPECT_EQ(numbers("a|b\n1|2\n3|4\n"), (Numbers{1, 3}));
  EXPECT_EQ(numbers("a;b\n1;2\n3;4\n"), (Numbers{1, 3}));
  EXPECT_EQ(numbers("sep=;\r\na;b\r\n1;2\r\n3;4\r\n"), (Numbers{1, 3}));
  // A comma in each text does not make it the separator.
  EXPECT_EQ(categories("name;x\nSmith, A;1\nJones, B;2\n"), (Texts{"Smith, A", "Jones, B"}));
  // Nor do decimal marks, even if they are in every field.
  EXPECT_EQ(numbers("1,5;2,5\n3,5;4,5\n"), (Numbers{1.5, 3.5}));
  EXPECT_EQ(numbers("1,5\t2,5\n3,5\t4,5\n"), (Numbers{1.5, 3.5}));
  EXPECT_EQ(numbers("alone\n1\n2\n"), (Numbers{1, 2}));
}

TEST_F(Tables, DecimalCommasAndThousandsAreDetected) {
  EXPECT_EQ(numbers("x;y\n1,5;a\n-2,25;b\n"), (Numbers{1.5, -2.25}));
  EXPECT_EQ(numbers("x;y\n1.234,5;a\n7,25;b\n"), (Numbers{1234.5, 7.25}));
  EXPECT_EQ(numbers("x,y\n\"1,234\",a\n\"12,345,678.5\",b\n99,c\n"),
            (Numbers{1234, 12345678.5, 99}));
  EXPECT_EQ(numbers("x,y\n\"0,5\",a\n\"1,25\",b\n"), (Numbers{0.5, 1.25}));
  // No group of thousands begins with a zero.
  EXPECT_EQ(numbers("x\ty\n0,123\ta\n1,250\tb\n"), (Numbers{0.123, 1.25}));
  EXPECT_EQ(numbers("x\ty\n-0.123\ta\n1.250\tb\n"), (Numbers{-0.123, 1.25}));
  // Another column tells what the point means.
  const Table table = read("x;y\n1.234;0,5\n5.678;1,5\n");
  EXPECT_EQ(table.columns[0].numbers, (Numbers{1234, 5678}));
  EXPECT_EQ(table.columns[1].numbers, (Numbers{0.5, 1.5}));
  EXPECT_EQ(numbers("x;y\n1,234;a\n", {.decimal = "comma"}), (Numbers{1.234}));
  EXPECT_EQ(numbers("x\n+1.5e-3\n.5\n5.\n-7\n"), (Numbers{1.5e-3, 0.5, 5, -7}));
}

TEST_F(Tables, QuotesLineEndsAndByteOrderMarks) {
  const Table table =
      read("\xEF\xBB\xBF\"a\"\"x\",b\r\n\"1\",\"two\r\nlines, \"\"and\"\" more\"\r\n2, \"z\" \r\n");
  EXPECT_EQ(table.columns[0].name, "a\"x");
  EXPECT_EQ(table.columns[0].numbers, (Numbers{1, 2}));
  EXPECT_EQ(table.columns[1].values, (Texts{"two\r\nlines, \"and\" more", "z"}));
  EXPECT_EQ(table.lines, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(numbers("a,b\r1,2\r3,4\r"), (Numbers{1, 3}));
  EXPECT_EQ(numbers("\n\na,b\n\n1,2\n\n3,4"), (Numbers{1, 3}));
  const std::string plain = "a,b\n1,2\n3,4\n";
  EXPECT_EQ(numbers(gzip(plain)), (Numbers{1, 3}));
}

TEST_F(Tables, MissingValuesOfAllSpellings) {
  const Table table =
      read("x,y\n1,a\n,b\nNA,\nnan,NULL\n?,None\nn/a,<NA>\n#N/A,a\n-,a\n2,a\n", {.missing = {"-"}});
  ASSERT_EQ(table.columns[0].type.kind, ColumnKind::kNumber);
  for (size_t i = 1; i < 8; ++i) EXPECT_TRUE(std::isnan(table.columns[0].numbers[i])) << i;
  EXPECT_EQ(table.columns[0].numbers[8], 2);
  EXPECT_EQ(table.columns[1].codes, (std::vector<int32_t>{0, 1, -1, -1, -1, -1, 0, 0, 0}));
}

TEST_F(Tables, CodesAreNoNumbers) {
  EXPECT_EQ(categories("zip,x\n01067,1\n80331,2\n"), (Texts{"01067", "80331"}));
  EXPECT_EQ(categories("id,x\n9007199254740993,1\n9007199254740995,2\n"),
            (Texts{"9007199254740993", "9007199254740995"}));
  EXPECT_EQ(numbers("n,x\n9007199254740992,1\n0,2\n"), (Numbers{9007199254740992.0, 0}));
}

TEST_F(Tables, TypesAreThoseOfTheWholeFile) {
  std::string late = "x,y\n";
  for (int i = 0; i < 300; ++i) late += std::to_string(i % 7) + ",1\n";
  EXPECT_EQ(read(late).columns[0].type.kind, ColumnKind::kNumber);
  config.on_error = "stop";
  EXPECT_TRUE(
      contains(data_error([&] { open(late + "abc,1\n", {.target = "y"}); }),
               "a.csv:302:1: column 'x' is 'abc', but nearly all of its values are numbers"));
  const auto as_categories = open(late + "abc,1\n1,0\n", {.target = "y", .categories = {"x"}});
  EXPECT_EQ(as_categories->signature.features[0].kind, "one-hot");
  config.on_error = "skip";
  EXPECT_EQ(open(late + "abc,1\n1,0\n", {.target = "y"})->train->size(), 301);
  EXPECT_EQ(read("b,x\ntrue,1\nFalse,2\n,3\n").columns[0].type.kind, ColumnKind::kBoolean);
}

TEST_F(Tables, DatesWithMistakesAreNoCategories) {
  std::string days = "d,y\n";
  for (int i = 0; i < 60; ++i) {
    days += "2024-0" + std::to_string(i % 9 + 1) + "-11," + std::to_string(i) + ".5\n";
  }
  config.on_error = "stop";
  EXPECT_TRUE(contains(data_error([&] { open(days + "2024-13-45,1.5\n", {.target = "y"}); }),
                       "a.csv:62:1: column 'd' is '2024-13-45', but nearly all of its values are "
                       "dates; correct it, name the text in data.missing"));
  const auto as_categories = open(days + "2024-13-45,1.5\n", {.target = "y", .categories = {"d"}});
  EXPECT_EQ(as_categories->signature.features[0].kind, "one-hot");
  config.on_error = "skip";
  const auto skipped = open(days + "2024-13-45,1.5\n2024,1.5\n", {.target = "y"});
  EXPECT_EQ(skipped->train->size(), 60);
  EXPECT_TRUE(contains(skipped->notes.back(), "2 skipped (value that is not a date)"));
  EXPECT_EQ(skipped->signature.features[0].kind, "date");
}

TEST_F(Tables, NumbersHaveOneDecimalMark) {
  const std::string text = "x,y\n1.5,0\n2.25,1\n\"1,5\",0\n\"3,5\",1\n";
  EXPECT_TRUE(contains(data_error([&] { open(text, {.target = "y"}); }),
                       "a.csv:4:1: column 'x' is '1,5', but the numbers before it have another "
                       "decimal mark; correct it"));
  config.on_error = "skip";
  EXPECT_EQ(open(text, {.target = "y"})->train->size(), 2);
}

TEST_F(Tables, Dates) {
  const auto first = [&](const std::string& text, const TableOptions& given = {}) {
    const Table table = read(text, given);
    EXPECT_EQ(table.columns[0].type.kind, ColumnKind::kDate) << text;
    return table.columns[0].numbers[0];
  };
  EXPECT_EQ(first("d\n1970-01-02\n2024-02-29\n"), 86400);
  EXPECT_EQ(first("d\n1970-01-02T01:02:03Z\n2024-02-29 12:30\n"), 86400 + 3723);
  EXPECT_EQ(first("d\n1970/1/2 01:00+01:00\n"), 86400);
  EXPECT_EQ(first("d\n02.01.1970\n31.12.2020\n"), 86400);
  EXPECT_EQ(first("d\n01/02/1970\n12/31/2020\n"), 86400);
  EXPECT_EQ(first("d\n02/01/1970\n03/04/2020\n", {.day_first = true}), 86400);
  EXPECT_EQ(read("d\n2024-02-30\n2024-01-01\n").columns[0].type.kind, ColumnKind::kCategory);
}

TEST_F(Tables, ColumnsOfDatesMayHaveOtherValues) {
  const auto format = [&](const std::string& dates, bool day_first = false) {
    const auto data = open("d,y\n" + dates + "soon,3.5\n",
                           {.target = "y", .dates = {"d"}, .day_first = day_first});
    EXPECT_EQ(data->train->size(), 3);
    EXPECT_TRUE(contains(data->notes.back(), "1 skipped (value that is not a date)"));
    return data->signature.features[0].format;
  };
  const std::string days = "31.12.2020,0.5\n01.02.1970,1.5\n05.06.2021,2.5\n";
  EXPECT_TRUE(contains(
      data_error([&] { open("d,y\n" + days + "soon,3.5\n", {.target = "y", .dates = {"d"}}); }),
      "a.csv:5:1: column 'd' is 'soon', which is not a date"));
  config.on_error = "skip";
  EXPECT_EQ(format(days), "day-first");
  EXPECT_EQ(format("12/31/2020,0.5\n01/02/1970,1.5\n05/06/2021,2.5\n"), "month-first");
  EXPECT_EQ(format("2020-12-31,0.5\n1970-02-01,1.5\n2021-06-05,2.5\n"), "year-first");
  const std::string either = "01/02/1970,0.5\n03/04/2020,1.5\n05/06/2021,2.5\n";
  EXPECT_EQ(format(either), "month-first");
  EXPECT_EQ(format(either, /*day_first=*/true), "day-first");
}

TEST_F(Tables, HeadersAreFoundOrNamed) {
  const Table table = read("1,2\n3,4\n");
  EXPECT_EQ(table.columns[1].name, "column_2");
  EXPECT_EQ(table.rows(), 2);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(read("2019,2020\n3,4\n", {.header = "yes"}).columns[0].name, "2019");
  EXPECT_EQ(read("a,b\n3,4\n", {.header = "no"}).rows(), 2);
}

TEST_F(Tables, TargetsDecideTheTask) {
  const auto task = [&](const std::string& text) {
    return open(text, {.target = "y"})->signature.task;
  };
  EXPECT_EQ(task("x,y\n1,cat\n2,dog\n3,cat\n"), "classification");
  EXPECT_EQ(task("x,y\n1,0\n2,1\n3,0\n"), "classification");
  EXPECT_EQ(task("x,y\n1,true\n2,no\n3,yes\n"), "classification");
  EXPECT_EQ(task("x,y\n1,0.5\n2,1\n3,0\n"), "regression");
  EXPECT_EQ(task("x,y\n1,3\n2,4\n3,5\n"), "regression");
  const auto data = open("x,y\n1,2\n2,1\n3,2\n", {.target = "y"});
  EXPECT_EQ(data->signature.classes, (Texts{"1", "2"}));
  EXPECT_EQ(data->signature.label, "y");
  ASSERT_EQ(data->notes.size(), 1u);
  EXPECT_TRUE(contains(data->notes[0], "taken as classes"));
  config.task = "regression";
  EXPECT_EQ(open("x,y\n1,2\n2,1\n3,2\n", {.target = "y"})->signature.task, "regression");
  EXPECT_TRUE(contains(data_error([&] { open("x,y\n1,2\n2,\n", {.target = "y"}); }),
                       "a.csv:3:3: column 'y' has no value"));
  EXPECT_TRUE(contains(data_error([&] { open("x,price\n1,2\n", {.target = "pric"}); }),
                       "did you mean 'price'"));
  EXPECT_THROW(open("x,y\n1,2\n2,3\n", {.target = "y", .targets = {"x"}}), UsageError);
}

TEST_F(Tables, ColumnsHaveOneRoleEach) {
  const std::string text = "x,y,w,p,id\n1,0.5,1,a,7\n2,1.5,2,b,8\n3,2.5,1,a,9\n4,3.5,1,b,7\n";
  config.folds = 2;
  config.group = "p";
  const auto data = open(text, {.ignore = {"id"}, .weight = "w"});
  EXPECT_EQ(data->signature.targets, Texts{"y"});
  EXPECT_EQ(data->signature.columns, Texts{"x"});
  const auto error = [&](const TableConfig& table) { return usage_error(text, table); };
  EXPECT_TRUE(contains(error({.target = "y", .ignore = {"y"}}),
                       "data.target: the column 'y' is in data.ignore"));
  EXPECT_TRUE(contains(error({.targets = {"x", "y"}, .ignore = {"y"}}),
                       "data.targets: the column 'y' is in data.ignore"));
  EXPECT_TRUE(contains(error({.target = "y", .ignore = {"w"}, .weight = "w"}),
                       "data.weight: the column 'w' is in data.ignore"));
  EXPECT_TRUE(
      contains(error({.target = "w", .weight = "w"}), "data.weight: the column 'w' is the target"));
  EXPECT_TRUE(
      contains(error({.target = "y", .weight = "p"}), "data.group: the column 'p' is data.weight"));
  EXPECT_TRUE(contains(error({.ignore = {"x", "y", "w", "id"}}), "leave no column to predict"));
}

TEST_F(Tables, TargetsAreStandardized) {
  const auto data = open("x,y\n1,10.5\n2,20.5\n3,30.5\n", {.target = "y"});
  EXPECT_EQ(data->signature.target_mean, (Numbers{20.5}));
  EXPECT_NEAR(data->signature.target_deviation[0], 8.16496580927726, 1e-12);
  float features = 0, target = 0;
  EXPECT_TRUE(fill_row(*data->train, 0, 0, &features, &target));
  EXPECT_FLOAT_EQ(target, -1.22474487F);
}

TEST_F(Tables, UselessColumnsAreLeftOutWithANote) {
  std::string text = "id,same,none,name,x,y\n";
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    text += n + ",5,,name " + n + "," + std::to_string(i * 37 % 11) + "," + n + ".5\n";
  }
  const auto data = open(text, {.target = "y"});
  EXPECT_EQ(data->signature.columns, (Texts{"x"}));
  ASSERT_EQ(data->notes.size(), 4u);
  EXPECT_TRUE(contains(data->notes[0], "column 'id' is left out: it numbers the rows"));
  EXPECT_TRUE(contains(data->notes[1], "column 'same' is left out: all of its values are 5"));
  EXPECT_TRUE(contains(data->notes[2], "column 'none' is left out: all of its values are missing"));
  EXPECT_TRUE(contains(data->notes[3], "column 'name' is left out: 60 of its 60 values differ"));
  const auto kept = open(text, {.target = "y", .numbers = {"id"}, .categories = {"name"}});
  EXPECT_EQ(kept->signature.columns, (Texts{"id", "name", "x"}));
}

// Models that embed categories read at least one other input.
TEST_F(Tables, CategoriesAreOneHotIfNothingElseIsLeft) {
  std::string text = "id,same,color,y\n";
  for (int i = 1; i <= 30; ++i) {
    text +=
        std::to_string(i) + ",7," + (i % 3 == 0 ? "red" : "blue") + (i % 2 == 0 ? ",a\n" : ",b\n");
  }
  const auto data = open(text, {.target = "y", .encoding = "index"});
  ASSERT_EQ(data->signature.features.size(), 1u);
  EXPECT_EQ(data->signature.features[0].kind, "one-hot");
  EXPECT_EQ(data->notes.size(), 2u);
  const auto kept = open(text, {.target = "y", .numbers = {"id"}, .encoding = "index"});
  EXPECT_EQ(kept->signature.features.back().kind, "category");
}

TEST_F(Tables, BinsAreThoseOfTheGivenNormalization) {
  const std::string text = "x,y\n3,1.5\n5,2.5\n,3.5\n9,4.5\n";
  config.mean = {1, 0.5};
  config.deviation = {2, 0.5};
  const auto data = open(text, {.target = "y"});
  ASSERT_EQ(data->signature.features.size(), 2u);
  EXPECT_EQ(data->signature.features[0].bins.front(), 1);
  EXPECT_EQ(data->signature.features[0].bins.back(), 4);
  EXPECT_EQ(data->signature.features[1].bins, (Numbers{-1, 1}));
  float features[2] = {}, target = 0;
  EXPECT_TRUE(fill_row(*data->train, 3, 0, features, &target));
  EXPECT_EQ(features[0], 4);
  EXPECT_EQ(features[1], -1);
  EXPECT_TRUE(contains(usage_error(text, {.target = "y", .transform = "quantile"}),
                       "data.mean and data.std have no effect on data.transform=quantile"));
  config.mean = {1};
  EXPECT_TRUE(contains(usage_error(text, {.target = "y"}), "each of the 2 columns"));
}

TEST_F(Tables, FoldsHoldEveryRowOutOnce) {
  std::string text = "x,y\n";
  for (int i = 0; i < 50; ++i)
    text += std::to_string(i * i) + (i % 5 == 0 ? ",rare\n" : ",often\n");
  config.folds = 5;
  std::set<std::string> held_out;
  for (config.fold = 0; config.fold < 5; ++config.fold) {
    const auto data = open(text, {.target = "y"});
    EXPECT_EQ(data->train->size(), 40);
    ASSERT_EQ(data->validation->size(), 10);
    int64_t rare = 0;
    for (int64_t i = 0; i < 10; ++i) {
      held_out.insert(data->validation->describe(i));
      rare += data->validation->label(i).value();
    }
    EXPECT_EQ(rare, 2);
  }
  EXPECT_EQ(held_out.size(), 50U);
  config.group = "folder";
  config.fold = 0;
  EXPECT_THROW(open(text, {.target = "y"}), UsageError);
}

TEST_F(Tables, RowsOfAGroupAreInOneFold) {
  std::string text = "x,patient,y\n";
  for (int i = 0; i < 60; ++i) {
    text += std::to_string(i * i % 61) + "," + std::to_string(100 + i % 12) +
            (i % 2 == 0 ? ",ill\n" : ",well\n");
  }
  config.folds = 3;
  config.group = "patient";
  std::vector<int> held_out(12, -1);
  for (config.fold = 0; config.fold < 3; ++config.fold) {
    const auto data = open(text, {.target = "y"});
    // A number says nothing of a row but to whom it belongs.
    EXPECT_EQ(data->signature.columns, (Texts{"x"}));
    EXPECT_EQ(data->validation->size(), 20);
    int64_t ill = 0;
    for (int64_t i = 0; i < data->validation->size(); ++i) {
      const std::string place = data->validation->describe(i);
      const int row = std::stoi(place.substr(place.rfind(':') + 1)) - 2;
      int& fold = held_out[static_cast<size_t>(row % 12)];
      EXPECT_TRUE(fold == -1 || fold == config.fold);
      fold = static_cast<int>(config.fold);
      ill += data->validation->label(i) == 0 ? 1 : 0;
    }
    EXPECT_EQ(ill, 10);
  }
  EXPECT_EQ(std::count(held_out.begin(), held_out.end(), -1), 0);
  config.fold = 0;
  const auto error = [&](const TableConfig& table) { return usage_error(text, table); };
  EXPECT_TRUE(contains(error({.target = "patient"}), "is the target"));
  EXPECT_TRUE(contains(error({.target = "y", .ignore = {"patient"}}), "data.ignore"));
  config.group = "doctor";
  EXPECT_TRUE(
      contains(error({.target = "y"}), "one of the columns of the table: x, patient and y"));
}

TEST_F(Tables, ValidationIsStratifiedAndHasNoPartInTheStatistics) {
  std::string text = "x,y\n";
  for (int i = 0; i < 100; ++i)
    text += std::to_string(i * i) + (i % 10 == 0 ? ",rare\n" : ",often\n");
  config.validation = 0.2;
  const auto data = open(text, {.target = "y"});
  ASSERT_EQ(data->train->size(), 80);
  ASSERT_EQ(data->validation->size(), 20);
  int64_t rare = 0;
  double sum = 0;
  for (int64_t i = 0; i < 20; ++i) {
    float x = 0;
    int64_t label = 0;
    EXPECT_TRUE(fill_row(*data->validation, i, 0, &x, &label));
    rare += label == 1 ? 1 : 0;
  }
  EXPECT_EQ(rare, 2);
  for (int64_t i = 0; i < 80; ++i) {
    float x = 0;
    int64_t label = 0;
    EXPECT_TRUE(fill_row(*data->train, i, 0, &x, &label));
    sum += x;
  }
  EXPECT_NEAR(sum, 0, 1e-4);
}

TEST_F(Tables, OtherRowsAreReadAsTheTrainingRows) {
  const auto data =
      open("kind,size,when,y\na,1,2024-01-01,1.5\nb,3,2024-02-02,2.5\na,,2024-03-04,4.5\n",
           {.target = "y", .encoding = "index"});
  const Signature& trained = data->signature;
  // Another separator and order, an unknown category, no target.
  add("when;size;kind\n2024-01-01;1;c\n2024-02-02;NA;b\n", "new.csv");
  const auto rows = table_rows(folder.name() + "/new.csv", trained);
  ASSERT_EQ(rows->size(), 2);
  EXPECT_TRUE(contains(rows->describe(1), "new.csv:3"));
  const size_t width = static_cast<size_t>(rows->fields()[0].shape.sizes[0]);
  std::vector<float> first(width), known(width);
  float target = 0;
  int64_t category = -1;
  int64_t lengths[3] = {};
  const auto fill = [&](const Samples& samples, int64_t index, std::vector<float>& features) {
    void* const fields[] = {features.data(), &target, &category};
    Scratch scratch;
    EXPECT_TRUE(samples.fill(index, 0, SampleRow(fields, lengths), scratch));
  };
  fill(*rows, 0, first);
  EXPECT_EQ(category, 0);
  fill(*data->train, 0, known);
  EXPECT_EQ(category, 1);
  EXPECT_EQ(first, known);
  fill(*rows, 1, first);
  EXPECT_EQ(category, 2);
  EXPECT_TRUE(contains(data_error([&] {
                         add("kind,size\na,1\n", "less.csv");
                         table_rows(folder.name() + "/less.csv", trained);
                       }),
                       "has no column 'when'"));
}

// Alone, the other files would be read with a decimal point.
TEST_F(Tables, OtherFilesHaveTheDecimalMarkOfTheTrainingFile) {
  const auto first_number = [&](const Signature& trained, const std::string& text) {
    add(text, "new.csv");
    const auto rows = table_rows(folder.name() + "/new.csv", trained);
    std::vector<float> features(static_cast<size_t>(rows->fields()[0].shape.sizes[0]));
    float target = 0;
    EXPECT_TRUE(fill_row(*rows, 0, 0, features.data(), &target));
    return features[0] * trained.deviation[0] + trained.mean[0];
  };
  const auto comma = open("area;y\n80,5;1\n1.250;2\n99,25;4\n", {.target = "y"});
  EXPECT_EQ(comma->signature.features[0].format, "comma-thousands");
  EXPECT_NEAR(first_number(comma->signature, "area;rooms\n1.250;3\n"), 1250, 1e-3);
  EXPECT_NEAR(first_number(comma->signature, "area;rooms\n1,25;3\n"), 1.25, 1e-3);
  const auto point = open("area,y\n80.5,1\n12.25,2\n99.25,4\n", {.target = "y"});
  EXPECT_NEAR(first_number(point->signature, "area;rooms\n1,250;3\n"), 1250, 1e-3);
  // Without any mark, the other file decides.
  const auto whole = open("area;y\n80;1\n12;2\n99;4\n", {.target = "y"});
  EXPECT_EQ(whole->signature.features[0].format, "");
  EXPECT_NEAR(first_number(whole->signature, "area;rooms\n1,25;3\n"), 1.25, 1e-3);
}

TEST_F(Tables, OtherFilesHaveTheHeaderAndSeparatorOfTheTrainingFile) {
  // As a run saves it.
  const auto saved = [](Signature signature) {
    const auto fields_of = [](Signature& one) {
      return [&one](config::Visitor& visitor) { visit(visitor, one); };
    };
    Signature read;
    config::Problems problems;
    config::read_fields(config::write_fields(fields_of(signature), config::Node()), fields_of(read),
                        problems);
    EXPECT_TRUE(problems.empty());
    return read;
  };
  const auto rows_of = [&](const DataModule& data, const std::string& text) {
    return table_rows(add(text, "new.csv"), saved(data.signature))->size();
  };
  const auto named =
      open("2019^y\n1^0.5\n2^1.5\n3^2.5\n", {.target = "y", .separator = "^", .header = "yes"});
  EXPECT_EQ(rows_of(*named, "2019^2020\n5^6\n"), 1);
  const auto unnamed = open("a;0.5\nb;1.5\na;2.5\n", {.separator = ";", .header = "no"});
  EXPECT_EQ(rows_of(*unnamed, "b,1\na,2\n"), 2);
}

TEST_F(Tables, ATextDoesNotHideTheFormatOfTheNumbers) {
  const std::string text = "price,x\n\"1,250\",1\n980,2\nn.d.,3\n\"2,100\",4\n";
  TableReader file({add(text)}, {});
  ColumnType number = file.scan()[0].type;
  EXPECT_EQ(number.number_format, "point-thousands");
  number = {.kind = ColumnKind::kNumber, .number_format = number.number_format};
  SkipPolicy stops(/*skips=*/false), skips(/*skips=*/true);
  const std::vector<ColumnType> types = {number, {.kind = ColumnKind::kNumber}};
  EXPECT_TRUE(contains(data_error([&] { file.read(types, stops); }),
                       "a.csv:4:1: column 'price' is 'n.d.'"));
  EXPECT_EQ(file.read(types, skips).columns[0].numbers, (Numbers{1250, 980, 2100}));
}

TEST_F(Tables, ValuesOfSkippedRowsAreNone) {
  TableReader file({add("label,age\ncat,1\nfish,abc\ndog,2\nfish,?\n")}, {});
  SkipPolicy skips(/*skips=*/true);
  const Table table = file.read(
      {{.kind = ColumnKind::kCategory}, {.kind = ColumnKind::kNumber, .is_required = true}}, skips);
  EXPECT_EQ(table.columns[0].values, (Texts{"cat", "dog"}));
  EXPECT_EQ(table.columns[0].codes, (std::vector<int32_t>{0, 1}));
}

TEST_F(Tables, JsonLinesGiveTheTableOfTheirCsv) {
  const Table csv = read(
      "zip,size,kind,old,built\n01067,1.5,a,true,2024-01-31\n80331,,b,false,\n,-2e3,\"a\"\"b\",,"
      "2024-02-29\n");
  const std::string json =
      "{\"zip\": \"01067\", \"size\": 1.5, \"kind\": \"a\", \"old\": true, \"built\": "
      "\"2024-01-31\"}\r\n"
      "\n"
      "{\"zip\": \"80331\", \"size\": null, \"old\": false, \"kind\": \"b\"}\n"
      "{\"old\": null, \"built\": \"2024-02-29\", \"size\": -2e3, \"kind\": \"a\\\"b\", \"zip\": "
      "\"\"}";
  const Table table = read_file(add(json, "a.jsonl"));
  ASSERT_EQ(table.rows(), 3);
  EXPECT_EQ(table.lines, (std::vector<int64_t>{1, 3, 4}));
  for (size_t i = 0; i < csv.columns.size(); ++i) {
    const TableColumn &one = csv.columns[i], &other = table.columns[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.type.kind, other.type.kind) << one.name;
    EXPECT_EQ(one.codes, other.codes);
    EXPECT_EQ(one.values, other.values);
    ASSERT_EQ(one.numbers.size(), other.numbers.size());
    for (size_t row = 0; row < one.numbers.size(); ++row) {
      ASSERT_EQ(std::isnan(one.numbers[row]), std::isnan(other.numbers[row]));
      if (!std::isnan(one.numbers[row])) {
        EXPECT_EQ(one.numbers[row], other.numbers[row]);
      }
    }
  }
}

}  // namespace
}  // namespace gallop::data
