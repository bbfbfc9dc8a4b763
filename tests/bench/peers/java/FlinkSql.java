import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/** Runs the statements of a file, of which the last one streams: FlinkSql settings.properties script.sql */
public class FlinkSql {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        Configuration configuration = new Configuration();
        settings.stringPropertyNames().forEach(
            name -> configuration.setString(name, settings.getProperty(name)));
        TableEnvironment tables = TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(configuration).build());
        TableResult last = null;
        for (String statement : Files.readString(Path.of(arguments[1])).split(";\n")) {
            if (!statement.isBlank()) {
                last = tables.executeSql(statement);
            }
        }
        last.await();
    }
}
