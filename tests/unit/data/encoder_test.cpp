// The preprocessing of tables next to scikit-learn's and pandas', by tests/parity/make_tables.py.
#include "gallop/data/table/encoder.h"

#include <fstream>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/data/table/scaling.h"
#include "gallop/data/table/table_reader.h"
#include "unit/data/format_files.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

using Numbers = std::vector<double>;
using Matrix = std::vector<std::vector<double>>;

const nlohmann::json& fixture() {
  static const nlohmann::json json = [] {
    std::ifstream file(fixtures() / "tables.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

void expect_near(const Numbers& found, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << i;
}

TEST(Scaling, EqualsScikitLearn) {
  for (const auto& [name, column] : fixture()["columns"].items()) {
    SCOPED_TRACE(name);
    const auto train = column["train"].get<Numbers>(), more = column["more"].get<Numbers>();
    const MeanDeviation scale = mean_deviation(train);
    Numbers standard;
    for (const double value : more) standard.push_back((value - scale.mean) / scale.deviation);
    expect_near(standard, column["standard"], 1e-6);
    expect_near(bins_of(train, 3), column["bins"], 1e-6);
    if (!column.contains("quantiles")) continue;
    Numbers sorted = train;
    std::sort(sorted.begin(), sorted.end());
    const Numbers quantiles = quantiles_of(sorted, column["count"].get<int64_t>());
    expect_near(quantiles, column["quantiles"], 1e-6);
    Numbers transformed;
    for (const double value : more) transformed.push_back(quantile_transform(value, quantiles));
    expect_near(transformed, column["quantile"], 1e-6);
  }
}

TEST(Scaling, NormalQuantiles) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-7), -5.199337582192817, 1e-12);
}

TEST(Encoder, EqualsScikitLearnOnAMixedTable) {
  const auto& mixed = fixture()["mixed"];
  const TestFolder folder;
  folder.add("a.csv", mixed["text"].get<std::string>());
  TableReader file({folder.name() + "/a.csv"}, {});
  std::vector<ColumnType> types;
  for (const ColumnScan& scan : file.scan()) types.push_back(scan.type);
  SkipPolicy skips(/*skips=*/false);
  const Table table = file.read(types, skips);
  std::vector<int64_t> rows(5);
  std::iota(rows.begin(), rows.end(), int64_t{0});
  const TableEncoder encoder = fit_encoder(table, {0, 1, 2, 3, 4, 5}, rows, {});
  const EncodedRows encoded = encode(table, encoder.features, encoder.normalization);
  ASSERT_TRUE(encoded.categories.empty());
  // The places of a feature's elements in a row.
  const auto column = [&](const std::string& name, const std::string& kind,
                          const std::string& part = {}) {
    size_t place = 0;
    for (const TableFeature& feature : encoder.features) {
      if (feature.column == name && feature.kind == kind && (part.empty() || feature.part == part))
        return place;
      place += feature.width();
    }
    ADD_FAILURE() << name << " has no " << kind << " " << part;
    return place;
  };
  const auto width = static_cast<size_t>(encoder.width());
  const auto numbers = mixed["numbers"].get<Matrix>(), missing = mixed["missing"].get<Matrix>(),
             parts = mixed["parts"].get<Matrix>(), kind = mixed["kind"].get<Matrix>(),
             code = mixed["code"].get<Matrix>();
  const auto garden = mixed["garden"].get<Numbers>();
  for (size_t row = 0; row < 5; ++row) {
    const float* const values = encoded.numbers.data() + row * width;
    const auto expect = [&](size_t place, double wanted) {
      EXPECT_NEAR(values[place], wanted, 1e-5) << row << " " << place;
    };
    expect(column("size", "number"), numbers[row][0]);
    expect(column("rooms", "number"), numbers[row][1]);
    expect(column("size", "missing"), missing[row][0]);
    expect(column("rooms", "missing"), missing[row][1]);
    expect(column("garden", "boolean"), garden[row]);
    const char* const names[] = {"days", "month", "day", "weekday"};
    for (size_t i = 0; i < 4; ++i) expect(column("built", "date", names[i]), parts[row][i]);
    for (size_t i = 0; i < 4; ++i) expect(column("kind", "one-hot") + i, kind[row][i]);
    for (size_t i = 0; i < 3; ++i) expect(column("code", "one-hot") + 1 + i, code[row][i]);
  }
}

}  // namespace
}  // namespace gallop::data
