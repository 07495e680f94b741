import java.io.ByteArrayInputStream;
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Scanner;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Sends the requests on its input by one HttpClient, one a line: method, path, content, fields, separated by tabs. The
 * content is `-` for none, `bytes N` for N bytes of a known length, `stream N` for N of an unknown one. `Expect: yes` asks
 * for 100 Continue. `{etag}` is the last entity tag. Prints version, status and length of each response.
 */
class JavaClient {
  public static void main(String[] arguments) throws Exception {
    var trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (var file = new FileInputStream(arguments[2])) {
      trusted.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(trusted);
    var tls = SSLContext.getInstance("TLS");
    tls.init(null, managers.getTrustManagers(), null);
    var client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(arguments[1])).sslContext(tls).build();
    var etag = "";
    for (var lines = new Scanner(System.in); lines.hasNextLine(); ) {
      var parts = lines.nextLine().split("\t");
      var request = HttpRequest.newBuilder(URI.create(arguments[0] + parts[1])).timeout(Duration.ofSeconds(30));
      request.method(parts[0], contentOf(parts[2]));
      for (var i = 3; i < parts.length; i++) {
        var field = parts[i].split(": ", 2);
        if (field[0].equals("Expect")) request.expectContinue(true);
        else request.header(field[0], field[1].replace("{etag}", etag));
      }
      var response = client.send(request.build(), BodyHandlers.ofByteArray());
      etag = response.headers().firstValue("ETag").orElse(etag);
      System.out.println(response.version() + " " + response.statusCode() + " " + response.body().length);
    }
  }

  static BodyPublisher contentOf(String text) {
    if (text.equals("-")) return BodyPublishers.noBody();
    var words = text.split(" ");
    if (words[0].equals("bytes")) return BodyPublishers.ofByteArray(new byte[Integer.parseInt(words[1])]);
    if (!words[0].equals("stream")) return BodyPublishers.ofString(text);
    return BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(new byte[Integer.parseInt(words[1])]));
  }
}
