#include "gallop/tune/storage/optuna_export.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/database/sqlite.h"
#include "gallop/tune/storage/memory.h"
#include "gallop/tune/tuner.h"

namespace gallop::tune {
namespace {

using database::SqliteDatabase;

// tests/parity/optuna_export.py compares what Optuna reads.
TEST(OptunaExport, WritesANewFile) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-optuna-");
  const fs::path path = folder.path() / "optuna.db";
  Tuner tuner(std::make_unique<MemoryStorage>(
      StudySettings{.name = "a",
                    .space = Space({{"x", Interval{}}, {"y", Interval{}}}, {}),
                    .objectives = {{"accuracy", true}}}));
  for (int i = 0; i < 3; ++i) {
    const Trial trial = tuner.ask("w").trial;
    tuner.report(trial, 1, 0.25);
    tuner.tell(trial, {.values = {0.5}});
  }
  tuner.ask("w");
  export_to_optuna(tuner.study(), path);
  SqliteDatabase database(path, /*create=*/false);
  EXPECT_EQ(database.number("SELECT schema_version FROM version_info"), 12);
  EXPECT_EQ(database.number("SELECT count(*) FROM trials WHERE state = 'COMPLETE'"), 3);
  EXPECT_EQ(database.number("SELECT count(*) FROM trials WHERE state = 'RUNNING'"), 1);
  EXPECT_EQ(database.number("SELECT count(*) FROM trial_params"), 8);
  EXPECT_EQ(database.number("SELECT count(*) FROM trial_values WHERE value = 0.5"), 3);
  EXPECT_EQ(database.number("SELECT count(*) FROM trial_intermediate_values WHERE "
                            "intermediate_value = 0.25"),
            3);
  EXPECT_THROW(export_to_optuna(tuner.study(), path), UsageError);
  EXPECT_THROW(export_to_optuna(tuner.study(), folder.path() / "none" / "a.db"), DeviceError);
}

TEST(OptunaExport, LeavesNoFilesAfterFailures) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-optuna-");
  // JSON is UTF-8.
  const Study study(StudySettings{
      .name = "a", .space = Space({{"x", Interval{}}}, {}), .objectives = {{"\xff", true}}});
  EXPECT_ANY_THROW(export_to_optuna(study, folder.path() / "optuna.db"));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace gallop::tune
