#include "gallop/base/energy.h"

#include <fstream>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop {
namespace {

class Counters {
 public:
  void write(const std::string& package, const std::string& file, double value) {
    fs::create_directories(path() / package);
    std::ofstream(path() / package / file) << static_cast<int64_t>(value);
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-energy-"};
};

TEST(EnergyCounter, SumsPackagesWithoutSubdomains) {
  Counters counters;
  for (const char* package : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"}) {
    counters.write(package, "energy_uj", 1e6);
    counters.write(package, "max_energy_range_uj", 100e6);
  }
  EnergyCounter counter(counters.path());
  ASSERT_TRUE(counter.is_there());
  counters.write("intel-rapl:0", "energy_uj", 3e6);
  counters.write("intel-rapl:1", "energy_uj", 2e6);
  counters.write("intel-rapl:0:0", "energy_uj", 50e6);
  EXPECT_DOUBLE_EQ(counter.joules(), 3);
  EXPECT_DOUBLE_EQ(counter.joules(), 0);
}

TEST(EnergyCounter, HandlesCounterWraparound) {
  Counters counters;
  counters.write("intel-rapl:0", "energy_uj", 99e6);
  counters.write("intel-rapl:0", "max_energy_range_uj", 100e6);
  EnergyCounter counter(counters.path());
  counters.write("intel-rapl:0", "energy_uj", 4e6);
  EXPECT_DOUBLE_EQ(counter.joules(), 5);
}

TEST(EnergyCounter, IsUnavailableWithoutCounters) {
  const Counters counters;
  EnergyCounter counter(counters.path());
  EXPECT_FALSE(counter.is_there());
  EXPECT_EQ(counter.joules(), 0);
}

}  // namespace
}  // namespace gallop
