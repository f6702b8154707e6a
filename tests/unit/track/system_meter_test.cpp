#include "gallop/track/system/system_meter.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "gallop/base/process_time.h"
#include "gallop/base/temporary_folder.h"
#include "unit/fixtures.h"

namespace gallop::track {
namespace {

// A machine simulated by files.
class SystemMeters : public testing::Test {
 protected:
  void SetUp() override {
    make_folders(proc() / "self");
    make_folders(package());
    write("meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n");
    write("self/statm", "1000 100 10 1 0 50 0\n");
    say(100, 900, 5'000'000, 1000, 2000);
    write_file_atomically(package() / "max_energy_range_uj", "100000000\n");
  }
  void say(int busy, int idle, int micro_joules, int read, int written) const {
    write("stat", "cpu  " + std::to_string(busy) + " 0 0 " + std::to_string(idle) +
                      " 0 0 0 0 0 0\ncpu0 1 2 3\n");
    write_file_atomically(package() / "energy_uj", std::to_string(micro_joules) + "\n");
    write("self/io", "rchar: 1\nread_bytes: " + std::to_string(read) +
                         "\nwrite_bytes: " + std::to_string(written) + "\n");
  }
  void write(const char* name, const std::string& text) const {
    write_file_atomically(proc() / name, text);
  }
  fs::path proc() const { return folder_.path() / "proc"; }
  fs::path package() const { return folder_.path() / "powercap/intel-rapl:0"; }
  SystemPlaces places() const { return {proc(), folder_.path() / "powercap", "/none.so"}; }

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-machine-"};
};

TEST_F(SystemMeters, ReportUsageSinceTheLastReading) {
  SystemMeter meter(1, places());
  say(175, 925, 7'000'000, 501'000, 2000);
  const SystemReading reading = meter.read();
  EXPECT_DOUBLE_EQ(reading.values.at("machine_cpu"), 0.75);
  EXPECT_DOUBLE_EQ(reading.values.at("machine_memory"), 0.75);
  EXPECT_EQ(reading.values.at("memory_bytes"), 100.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(reading.values.at("joules"), 2);
  EXPECT_EQ(reading.energy_method, "rapl");
  EXPECT_GT(reading.values.at("disk_read"), 0);
  EXPECT_EQ(reading.values.at("disk_written"), 0);
  EXPECT_FALSE(reading.values.contains("gpu0_use"));
  EXPECT_EQ(meter.read().values.at("joules"), 0);
}

TEST_F(SystemMeters, EstimateEnergyFromCoresAndMemory) {
  fs::remove_all(folder_.path() / "powercap");
  write("self/statm", "1000 0 10 1 0 50 0\n");
  SystemMeter one(1, places()), four(4, places());
  const double begin = process_cpu_seconds();
  while (process_cpu_seconds() < begin + 0.05) continue;
  const double spent = process_cpu_seconds() - begin;
  const SystemReading reading = one.read();
  EXPECT_EQ(reading.energy_method, "estimated");
  EXPECT_GE(reading.values.at("joules"), 12 * spent);
  // Four processes with the same load use four times as much.
  EXPECT_GE(four.read().values.at("joules"), 4 * 12 * spent);
  EXPECT_EQ(one.read().values.at("memory_bytes"), 0);
}

TEST_F(SystemMeters, ReportGpus) {
  SystemPlaces with_gpus = places();
  with_gpus.nvml = beside_program("libfake_nvml.so");
  SystemMeter meter(1, with_gpus);
  const SystemReading reading = meter.read();
  EXPECT_EQ(reading.energy_method, "rapl+nvml");
  EXPECT_DOUBLE_EQ(reading.values.at("gpu0_use"), 0.75);
  EXPECT_EQ(reading.values.at("gpu0_memory_bytes"), 10.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(reading.values.at("gpu0_watts"), 250.5);
  EXPECT_EQ(reading.values.at("gpu0_celsius"), 61);
  EXPECT_DOUBLE_EQ(reading.values.at("gpu1_watts"), 250.5);
  EXPECT_FALSE(reading.values.contains("gpu1_use"));
  // What the first has counted, and for the second its power times a very short time.
  EXPECT_NEAR(reading.values.at("joules"), 10, 9);
  EXPECT_GE(reading.values.at("joules"), 10);
}

TEST_F(SystemMeters, OmitUnavailableReadings) {
  fs::remove_all(proc());
  SystemMeter meter(1, places());
  const SystemReading reading = meter.read();
  EXPECT_TRUE(reading.values.contains("cpu"));
  EXPECT_FALSE(reading.values.contains("machine_cpu"));
  EXPECT_FALSE(reading.values.contains("memory_bytes"));
  EXPECT_FALSE(reading.values.contains("disk_read"));
}

}  // namespace
}  // namespace gallop::track
