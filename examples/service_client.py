"""Ask a service to release values, and ask again after a lost answer.

Start one, and put the access key that it prints into the environment:

    sfumato sample activities
    sfumato fit history.csv --stream person --value activity -o watch.model
    sfumato serve --home watch-home --model watch.model --epsilon 0.5
    SFUMATO_ACCESS_KEY=sfk_... python examples/service_client.py http://localhost:8477
"""

import os
import sys

import sfumato as sf

address = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8477"
with sf.Client(address, os.environ["SFUMATO_ACCESS_KEY"]) as client:
    for number, activity in enumerate(["sitting", "sitting", "walking"]):
        # An id of your own: if the answer is lost, the same question gets the same answer.
        answer = client.release("p01", activity, id=f"p01-{number}")
        again = client.release("p01", activity, id=f"p01-{number}")
        print(f"{activity} left as {answer.released}; asked again: {again.released}")
        assert again.released == answer.released
